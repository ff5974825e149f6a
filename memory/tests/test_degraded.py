"""When a tier does not serve, a lower one answers and the account says why."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EmbeddingFailed
from engine.types import Mode, Tier
from memory import wiring
from memory.api.present import preview_out
from memory.errors import TierDown, from_engine
from memory.models import VectorIndex
from memory.principal import Principal
from memory.services import settings as studio_settings
from memory.services.retrieval import RetrievalView, RetrieveRequest, retrieve
from memory.services.status import engine_status
from memory.tests.asking import contents
from memory.tests.conftest import Remember, Work
from memory.tests.watched import outage, watch

VECTOR_MODES = pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Mode.VECTOR, id="preview_03-vector"),
        pytest.param(Mode.HYBRID, id="preview_04-hybrid"),
    ],
)


def _codes(view: RetrievalView) -> list[str]:
    return [item.code for item in view.retrieval.degraded]


def _retrieve(principal: Principal, mode: Mode, query: str = "tea") -> RetrievalView:
    return retrieve(principal, RetrieveRequest(query, mode=mode))


@VECTOR_MODES
@pytest.mark.parametrize(("source", "code"), [("remote", "no_key"), ("static", "not_installed")])
def test_retrieval_03_without_a_source_keywords_answer(
    alice: Principal, manager: Principal, remember: Remember, mode: Mode, source: str, code: str
) -> None:
    studio_settings.update(manager, {"embeddingSource": source})
    remember(alice, "the capital city is Oslo")
    view = _retrieve(alice, mode, "capital city")
    assert contents(view) == ["the capital city is Oslo"]
    assert (view.retrieval.tier, _codes(view)) == (Tier.KEYWORD, [code])
    resolution = preview_out(view)["resolution"]
    assert resolution["fallbackReason"]
    assert resolution["strategyUsed"] == "exact"
    assert (resolution["embeddingSource"], resolution["vectorStore"]) == (None, None)


@VECTOR_MODES
def test_before_the_first_vector_keywords_answer_and_say_so(
    alice: Principal, remember: Remember, mode: Mode
) -> None:
    remember(alice, "likes tea")
    view = _retrieve(alice, mode)
    assert (contents(view), _codes(view)) == (["likes tea"], ["empty"])


@VECTOR_MODES
def test_a_source_that_fails_while_searching_leaves_the_keywords(
    alice: Principal, remember: Remember, work: Work, settings: Any, mode: Mode
) -> None:
    source = watch(settings)
    remember(alice, "likes tea")
    work()
    source.before = outage
    view = _retrieve(alice, mode)
    assert contents(view) == ["likes tea"]
    assert (view.retrieval.tier, _codes(view)) == (Tier.KEYWORD, ["timeout"])
    source.before = lambda texts: None
    assert _codes(_retrieve(alice, mode)) == []


@VECTOR_MODES
def test_a_source_that_fails_over_waiting_memories_does_not_fail_the_search(
    alice: Principal, remember: Remember, work: Work, settings: Any, mode: Mode
) -> None:
    source = watch(settings)
    remember(alice, "likes tea")
    work()
    remember(alice, "tea again")
    source.before = outage
    view = _retrieve(alice, mode)
    assert sorted(contents(view)) == ["likes tea", "tea again"]
    assert _codes(view) == ["timeout"]


def test_partial_coverage_is_noted_with_its_figures(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    def refuse_poison(texts: Any) -> None:
        if any("poison" in text for text in texts):
            raise EmbeddingFailed(code="invalid_response")

    watch(settings, refuse_poison)
    remember(alice, "likes tea")
    remember(alice, "poison in the tea")
    work()
    view = _retrieve(alice, Mode.VECTOR)
    assert contents(view) == ["likes tea"]
    assert [(item.code, item.message) for item in view.retrieval.degraded] == [
        ("partial", "1 of 2 passages have a vector yet")
    ]
    assert sorted(contents(_retrieve(alice, Mode.HYBRID))) == ["likes tea", "poison in the tea"]


def test_a_broken_vector_table_leaves_the_keywords(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    VectorIndex.objects.update(dim=7)
    wiring.reset()
    view = _retrieve(alice, Mode.HYBRID)
    assert contents(view) == ["likes tea"]
    assert view.retrieval.degraded


def test_keyword_mode_never_asks_the_source(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings)
    remember(alice, "likes tea")
    work()
    source.before = outage
    view = _retrieve(alice, Mode.KEYWORD)
    assert (contents(view), _codes(view)) == (["likes tea"], [])


def test_engine_status_tells_a_failing_job_and_an_unset_source(
    alice: Principal, manager: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    watch(settings, outage)
    remember(alice, "likes tea")
    work()
    status = engine_status(manager)
    assert status.vector_store.state == "warn"
    assert "did not answer in time" in status.vector_store.reason
    studio_settings.update(manager, {"embeddingSource": "remote"})
    embedding = engine_status(manager).embedding
    assert (embedding.state, embedding.code, embedding.available) == ("off", "no_key", False)
    assert embedding.reason


def test_an_engine_error_is_a_tier_that_is_down() -> None:
    error = from_engine(EmbeddingFailed(code="rate_limited"))
    assert isinstance(error, TierDown)
    assert (error.status, error.code) == (503, "rate_limited")
