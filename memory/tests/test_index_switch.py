"""A change of the model builds beside the live index and switches when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection

from engine.types import Mode
from memory import wiring
from memory.errors import Forbidden
from memory.models import Job, Memory, PassageChange, VectorIndex, VectorMark
from memory.principal import Principal
from memory.services import embedding, indexes, jobrows, memories, reindex
from memory.services import settings as studio_settings
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.asking import ask, contents
from memory.tests.conftest import Remember, Work
from memory.tests.watched import outage, watch


@pytest.fixture
def forty(alice: Principal, remember: Remember, work: Work, settings: Any) -> Principal:
    """Alice with forty memories, all embedded by the light model."""
    watch(settings)
    studio_settings.update(
        Principal("system", "test", frozenset({"manage"})), {"localModel": "use-multilingual"}
    )
    for place in range(40):
        remember(alice, f"note{place} of tea", key=f"k{place}")
    work()
    return alice


def _states() -> dict[str, str]:
    return dict(VectorIndex.objects.values_list("model", "state"))


def _model_of(principal: Principal) -> str | None:
    view = retrieve(principal, RetrieveRequest("note7", mode=Mode.VECTOR))
    assert contents(view)[0] == "note7 of tea"
    return view.retrieval.embedding_model


def test_ensure_ready_03_searches_use_the_old_index_until_the_new_one_is_complete(
    forty: Principal, manager: Principal, work: Work, settings: Any
) -> None:
    seen: list[tuple[dict[str, str], str | None, float | None]] = []

    def look(_texts: Sequence[str]) -> None:
        source.before = lambda texts: None
        seen.append((_states(), _model_of(forty), embedding.coverage().building_percent))
        source.before = look if len(seen) < 2 else lambda texts: None

    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    source = watch(settings)
    source.before = look
    reindex.start(manager)
    work()
    both = {"fake-light": "active", "fake-e5": "building"}
    assert seen == [(both, "fake-light", 0.0), (both, "fake-light", 40.0)]
    assert _states() == {"fake-e5": "active", "fake-light": "retired"}
    assert _model_of(forty) == "fake-e5"
    assert embedding.coverage().percent == 100.0


def test_another_model_is_built_without_being_asked_for(
    forty: Principal, manager: Principal, work: Work
) -> None:
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    assert work() == 1
    assert _states() == {"fake-e5": "active", "fake-light": "retired"}
    studio_settings.update(manager, {"localModel": "multilingual-e5-small", "maxTokens": 100})
    assert work() == 0


def test_a_new_model_that_fails_leaves_the_old_index_serving(
    forty: Principal, manager: Principal, work: Work, settings: Any
) -> None:
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    watch(settings, outage)
    job = reindex.start(manager)
    work()
    job.refresh_from_db()
    assert (job.state, job.error_code) == (Job.State.FAILED, "timeout")
    assert _states() == {"fake-light": "active", "fake-e5": "building"}
    assert _model_of(forty) == "fake-light"


def test_a_memory_stored_while_building_waits_for_both_indexes(
    forty: Principal, manager: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    source = watch(settings)

    def store(_texts: Sequence[str]) -> None:
        source.before = lambda texts: None
        remember(forty, "late tea", key="late")
        marks = VectorMark.objects.filter(passage__memory__key="late")
        assert set(marks.values_list("index__model", flat=True)) == {"fake-e5", "fake-light"}

    source.before = store
    reindex.start(manager)
    work()
    assert embedding.coverage().percent == 100.0
    assert ask(forty, "late tea", mode=Mode.VECTOR)[0] == "late tea"


def test_going_back_to_the_old_model_drops_what_was_being_built(
    forty: Principal, manager: Principal, work: Work, settings: Any
) -> None:
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    watch(settings, outage)
    reindex.start(manager)
    work()
    studio_settings.update(manager, {"localModel": "use-multilingual"})
    reindex.start(manager)
    work()
    assert _states()["fake-light"] == "active"
    assert _model_of(forty) == "fake-light"


def test_vectors_of_another_signature_are_never_searched_together(
    forty: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    before = embedding.active_index()
    assert before is not None
    with_e5 = {"localModel": "multilingual-e5-small"}
    studio_settings.update(manager, with_e5)
    reindex.start(manager)
    work()
    after = embedding.active_index()
    assert after is not None
    assert (before.dim, after.dim) == (48, 64)
    assert wiring.store_for(after).count() == 40
    before.refresh_from_db()
    assert before.state == VectorIndex.State.RETIRED
    assert not before.marks.exists()


def test_only_a_manager_reindexes(alice: Principal) -> None:
    with pytest.raises(Forbidden):
        reindex.start(alice)


def test_there_are_never_two_reindexes(manager: Principal, alice: Principal) -> None:
    first, second = reindex.start(manager), reindex.start(manager, force=True)
    assert first.pk == second.pk
    assert Job.objects.count() == 1
    jobrows.cancel(manager, first.pk)
    assert reindex.start(manager).pk != first.pk


def test_an_index_dropped_behind_our_back_is_filled_again_by_force(
    forty: Principal, manager: Principal, work: Work
) -> None:
    index = embedding.active_index()
    assert index is not None
    wiring.store_for(index).drop()
    assert ask(forty, "note7", mode=Mode.VECTOR) == []
    reindex.start(manager, force=True)
    work()
    assert ask(forty, "note7", mode=Mode.VECTOR)[0] == "note7 of tea"


@pytest.mark.parametrize("purge", [False, True], ids=["trashed", "erased"])
def test_a_deleted_memory_takes_its_vector_along(forty: Principal, purge: bool) -> None:
    index = embedding.active_index()
    assert index is not None
    memories.delete(forty, Memory.objects.get(key="k7").pk, purge=purge)
    assert wiring.store_for(index).count() == 39
    assert "note7 of tea" not in ask(forty, "note7", mode=Mode.VECTOR, limit=100)


def test_vec_meta_03_04_a_table_dropped_behind_our_back_heals_itself(
    forty: Principal, remember: Remember, work: Work
) -> None:
    index = embedding.active_index()
    assert index is not None
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE memory_vector")
    memories.delete(forty, Memory.objects.get(key="k7").pk)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE memory_vector")
    remember(forty, "late tea", key="late")
    work()
    assert wiring.store_for(index).count() == 1


def test_searches_go_on_when_the_change_log_was_pruned(
    forty: Principal, remember: Remember
) -> None:
    assert ask(forty, "note7", mode=Mode.VECTOR)[0] == "note7 of tea"
    remember(forty, "late tea", key="late")
    earlier = PassageChange.objects.count()
    embedding.prune_changes(keep=1)
    # On a server all entries of one transaction are kept or go together.
    assert PassageChange.objects.count() == (1 if connection.vendor == "sqlite" else earlier)
    assert ask(forty, "late tea", mode=Mode.VECTOR)[0] == "late tea"


def test_a_model_that_is_chosen_while_another_is_being_built_is_built_next(
    forty: Principal, manager: Principal, work: Work, settings: Any
) -> None:
    def change_mind(_texts: Sequence[str]) -> None:
        source.before = lambda texts: None
        studio_settings.update(manager, {"localModel": "use-multilingual"})

    source = watch(settings)
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    work()
    assert _states() == {"fake-e5": "active", "fake-light": "retired"}
    source.before = change_mind
    reindex.start(manager, force=True)
    work()
    assert _states() == {"fake-light": "active", "fake-e5": "retired"}


def test_going_back_to_the_live_model_leaves_nothing_half_built(
    forty: Principal, manager: Principal, work: Work
) -> None:
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    indexes.target_index()
    assert _states()["fake-e5"] == "building"
    studio_settings.update(manager, {"localModel": "use-multilingual"})
    work()
    assert _states() == {"fake-light": "active"}
    Job.objects.update(finished_at=None)
    assert embedding.resume() is False


def test_a_choice_that_no_job_has_seen_is_noticed_by_the_round(
    forty: Principal, manager: Principal, work: Work
) -> None:
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    Job.objects.all().delete()
    assert embedding.resume() is True
    work()
    assert _states() == {"fake-e5": "active", "fake-light": "retired"}


def test_an_index_that_was_discarded_meanwhile_does_not_take_over(
    forty: Principal, manager: Principal, settings: Any
) -> None:
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    building = indexes.target_index()
    assert building is not None
    building.marks.all().delete()
    VectorIndex.objects.filter(pk=building.pk).delete()
    indexes.switch(building)
    assert _states() == {"fake-light": "active"}
    assert _model_of(forty) == "fake-light"


def test_no_vector_is_stored_for_an_index_that_was_dropped_while_it_was_made(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings)
    remember(alice, "likes tea")

    def drop(_texts: Sequence[str]) -> None:
        VectorIndex.objects.all().delete()

    source.before = drop
    work()
    source.before = lambda _texts: None
    held = "SELECT DISTINCT index_id FROM memory_vector"
    with connection.cursor() as cursor:
        orphans = {row[0] for row in cursor.execute(held).fetchall()}
    assert orphans <= set(VectorIndex.objects.values_list("pk", flat=True))
