"""A search never waits for a model to load: it answers by words and says so."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from engine.types import Health, Tier
from memory import readiness, wiring
from memory.principal import Principal
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.conftest import Remember, Work
from memory.tests.sources import LoadingEmbedding


@pytest.fixture
def slow_model(settings: Any) -> Iterator[None]:
    """After a restart the model takes its time."""
    LoadingEmbedding.gate.clear()
    settings.MEMORY_LOCAL_SOURCES = {"multilingual-e5-small": "memory.tests.sources.loading"}
    yield
    LoadingEmbedding.gate.set()


def test_words_answer_while_the_model_loads(
    alice: Principal, remember: Remember, work: Work, slow_model: None
) -> None:
    remember(alice, "likes green tea")
    work()
    request = RetrieveRequest("tea")
    first = retrieve(alice, request).retrieval
    assert (first.tier, [item.code for item in first.degraded]) == (Tier.KEYWORD, ["loading"])
    assert len(first.hits) == 1

    LoadingEmbedding.gate.set()
    source = wiring.resolve_source().source
    assert source is not None
    assert readiness.is_ready(source, wait_s=30)
    assert retrieve(alice, request).retrieval.tier is Tier.HYBRID


def test_evaluation_waits_for_the_model(
    alice: Principal, remember: Remember, work: Work, slow_model: None
) -> None:
    remember(alice, "likes green tea")
    work()
    answer = retrieve(alice, RetrieveRequest("tea"), purpose="evaluate").retrieval
    assert answer.tier is Tier.HYBRID


class SlowStore:
    """A store that reads itself into memory once the gate is open."""

    def __init__(self) -> None:
        self.gate = Event()
        self.is_loaded = False

    def health(self) -> Health:
        """Load, then be healthy."""
        self.gate.wait(30)
        self.is_loaded = True
        return Health(True)


def test_a_large_index_is_read_in_the_background() -> None:
    store = SlowStore()
    assert readiness.is_ready(store, wait_s=0.01) is False
    store.gate.set()
    assert readiness.is_ready(store, wait_s=30) is True
    assert readiness.is_ready(store, wait_s=0) is True
