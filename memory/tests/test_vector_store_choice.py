"""The store of vectors that the settings choose, on SQLite and on Postgres."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from engine.types import Mode
from memory import wiring
from memory.models import VectorIndex
from memory.principal import SYSTEM, Principal
from memory.services import embedding, memories
from memory.services import settings as settings_service
from memory.services.status import engine_status
from memory.tests.asking import ask
from memory.tests.conftest import Remember, Work


def is_postgres() -> bool:
    return connection.vendor == "postgresql"


def choose(store: str) -> None:
    settings_service.update(SYSTEM, {"vectorStore": store})


def serving() -> str:
    return wiring.store_for(VectorIndex.objects.get()).name


@pytest.mark.parametrize("chosen", ["auto", "in-process", "pgvector", "sqlite-vec"])
def test_the_store_that_serves_is_the_one_that_can(
    alice: Principal, remember: Remember, work: Work, chosen: str
) -> None:
    choose(chosen)
    remember(alice, "likes tea")
    work()
    best = "pgvector" if is_postgres() and chosen != "in-process" else "in-process"
    state = engine_status(alice).vector_store
    assert (serving(), state.label) == (best, best)
    is_as_chosen = chosen in ("auto", best)
    assert (state.state, state.code) == (("on", "") if is_as_chosen else ("warn", "fallback"))
    assert ask(alice, "tea", mode=Mode.VECTOR) == ["likes tea"]


def test_changing_the_store_embeds_nothing_and_loses_nothing(
    alice: Principal, remember: Remember, work: Work
) -> None:
    choose("in-process")
    for drink in ("tea", "coffee"):
        remember(alice, f"likes {drink}")
    work()
    source = wiring.resolve_source().source
    assert source is not None
    embedded = source.stats.misses
    for chosen in ("pgvector", "in-process", "auto"):
        choose(chosen)
        assert len(ask(alice, "tea", mode=Mode.VECTOR)) == 2, "before anything was made for it"
        assert work() == (1 if chosen == "pgvector" and is_postgres() else 0)
        assert embedding.is_unkept() is False
        assert len(ask(alice, "tea", mode=Mode.VECTOR)) == 2
    assert source.stats.misses <= embedded + 1, "the question alone"


def test_what_is_written_under_another_choice_is_there_when_the_store_is_chosen_again(
    alice: Principal, remember: Remember, work: Work
) -> None:
    choose("pgvector")
    gone = remember(alice, "likes tea")
    remember(alice, "likes coffee")
    work()
    choose("in-process")
    memories.delete(alice, gone.pk, purge=True)
    remember(alice, "likes cocoa")
    work()
    choose("pgvector")
    found = ask(alice, "cocoa", mode=Mode.VECTOR)
    assert (found[0], sorted(found)) == ("likes cocoa", ["likes cocoa", "likes coffee"])
    assert embedding.coverage().pending == 0


def test_the_environment_chooses_what_graphs_of_pgvector_are_made_over(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    settings.MEMORY_STUDIO_PGVECTOR_QUANTIZATION = "int8"
    remember(alice, "likes tea")
    work()
    detail = wiring.store_for(VectorIndex.objects.get()).health().detail
    assert detail.get("notice") == ("halfvec_for_int8" if is_postgres() else None)
