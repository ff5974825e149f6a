"""Lost vectors and late requests are noticed by the rounds that run by themselves."""

from __future__ import annotations

import pytest

from engine.errors import Unavailable
from engine.types import Mode
from memory import wiring
from memory.models import Job, VectorIndex
from memory.principal import Principal
from memory.services import embedding, housekeeping, reindex
from memory.services.embedding import KEYWORD_CURSOR, reconcile, resume
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.services.status import engine_status
from memory.tests.asking import ask
from memory.tests.conftest import Remember, Work
from memory.tests.derived import keyword_table, lose_keywords


def test_a_lost_vector_table_is_filled_again(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    remember(alice, "likes coffee")
    work()
    assert reconcile() == 0
    wiring.store_for(VectorIndex.objects.get()).drop()
    assert reconcile() == 2
    assert embedding.coverage().pending == 2


def test_a_rebuild_asked_for_in_the_last_moment_of_a_job_is_done(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    Job.objects.filter(kind="reindex").update(params={KEYWORD_CURSOR: 0})
    wiring.keyword_index().clear()
    assert resume() is True
    work()
    assert wiring.keyword_index().count() == 1
    assert resume() is False


def test_a_broken_keyword_table_is_a_tier_that_is_off(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    lose_keywords()
    answer = retrieve(alice, RetrieveRequest("tea")).retrieval
    assert len(answer.hits) == 1
    assert [(item.tier, item.code) for item in answer.degraded] == [("keyword", "unavailable")]


def test_a_lost_keyword_index_refuses_a_write_and_a_forced_reindex_heals_it(
    alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    lose_keywords()
    with pytest.raises(Unavailable):
        remember(alice, "likes coffee")
    reindex.start(manager, force=True)
    work()
    remember(alice, "likes cocoa")
    assert [ask(alice, word, mode=Mode.KEYWORD) for word in ("tea", "coffee", "cocoa")] == [
        ["likes tea"],
        [],
        ["likes cocoa"],
    ]


def test_a_start_notices_that_keyword_rows_are_lost(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    assert reindex.renew_keywords() is False
    lose_keywords()
    wiring.ensure_indexes()
    assert reindex.renew_keywords() is True
    work()
    assert ask(alice, "tea", mode=Mode.KEYWORD) == ["likes tea"]
    assert reindex.renew_keywords() is False


def test_a_keyword_index_that_is_beyond_repair_does_not_keep_the_rest_from_starting(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    lose_keywords()
    wiring.connect().execute(f"CREATE VIEW {keyword_table()} AS SELECT 1 AS title")
    wiring.store_for(VectorIndex.objects.get()).drop()
    housekeeping.start()
    assert embedding.coverage().pending == 1
    assert wiring.keyword_index().health().available is False


def test_vectors_that_cannot_be_read_are_told_and_made_again_by_the_next_start(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    assert engine_status(alice).vector_store.state == "on"
    wiring.connect().execute("UPDATE memory_vector SET vector = ?", (b"\0",))
    wiring.reset()
    state = engine_status(alice).vector_store
    assert (state.state, state.code) == ("warn", "lost")
    assert reconcile() == 1
    embedding.embed_soon()
    work()
    assert engine_status(alice).vector_store.state == "on"
    assert ask(alice, "tea", mode=Mode.VECTOR) == ["likes tea"]
