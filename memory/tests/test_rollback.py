"""A switch keeps the earlier index for a while, and one can go back to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from engine.types import Mode
from memory import secretbox, wiring
from memory.clock import now
from memory.errors import Forbidden, NotFound, TierDown
from memory.models import AuditEntry, Job, Memory, VectorIndex, VectorMark
from memory.principal import Principal
from memory.services import embedding, housekeeping, indexes, memories, reindex, rollback
from memory.services import settings as studio_settings
from memory.tests.asking import ask
from memory.tests.conftest import Remember, Work
from memory.tests.watched import WatchedEmbedding, outage, watch

LIGHT = {"localModel": "use-multilingual"}
E5 = {"localModel": "multilingual-e5-small"}
BACK = {"fake-e5": "active", "fake-light": "retired"}


@pytest.fixture
def source(settings: Any) -> WatchedEmbedding:
    """The default model, watched."""
    return watch(settings)


@pytest.fixture
def switched(
    alice: Principal,
    manager: Principal,
    remember: Remember,
    work: Work,
    source: WatchedEmbedding,
) -> Principal:
    """Alice with twenty memories; the default model was followed by the light one."""
    studio_settings.update(manager, E5)
    for place in range(20):
        remember(alice, f"note{place} of tea", key=f"k{place}")
    work()
    studio_settings.update(manager, LIGHT)
    work()
    source.calls.clear()
    assert _states() == {"fake-light": "active", "fake-e5": "retired"}
    return alice


def _states() -> dict[str, str]:
    return dict(VectorIndex.objects.values_list("model", "state"))


def _index(model: str) -> VectorIndex:
    return VectorIndex.objects.get(model=model)


def _held(index: VectorIndex) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM memory_vector WHERE index_id = %s", [index.pk])
        return int(cursor.fetchone()[0])


def test_going_back_to_an_index_that_lacks_nothing_takes_no_embedding(
    switched: Principal, manager: Principal, source: WatchedEmbedding
) -> None:
    done = rollback.roll_back(manager)
    assert (done.is_active, done.pending, done.job) == (True, 0, None)
    assert _states() == BACK
    assert studio_settings.get().local_model == "multilingual-e5-small"
    assert source.documents == []
    assert ask(switched, "note7", mode=Mode.VECTOR)[0] == "note7 of tea"
    entry = AuditEntry.objects.get(action="engine.rollback")
    assert (entry.actor, entry.detail) == (manager.label, {"model": "fake-e5"})


def test_only_what_changed_meanwhile_is_embedded(
    switched: Principal,
    manager: Principal,
    remember: Remember,
    work: Work,
    source: WatchedEmbedding,
) -> None:
    remember(switched, "a new note", key="new")
    memories.update(switched, Memory.objects.get(key="k3").pk, {"content": "note3 of cocoa"})
    memories.update(switched, Memory.objects.get(key="k4").pk, {"isPinned": True})
    memories.delete(switched, Memory.objects.get(key="k5").pk)
    work()
    assert not VectorMark.objects.exists()
    assert embedding.coverage().retired_percent == 90.0
    done = rollback.roll_back(manager)
    assert (done.is_active, done.pending) == (False, 2)
    assert _states() == {"fake-e5": "building", "fake-light": "active"}
    work()
    assert _states() == BACK
    assert sorted(source.documents) == ["k3\nnote3 of cocoa", "new\na new note"]
    assert ask(switched, "cocoa", mode=Mode.VECTOR)[0] == "note3 of cocoa"
    assert embedding.coverage().percent == 100.0


def test_choosing_the_earlier_model_again_is_as_good(
    switched: Principal, manager: Principal, work: Work, source: WatchedEmbedding
) -> None:
    studio_settings.update(manager, E5)
    assert work() == 1
    assert _states() == BACK
    assert source.documents == []


def test_one_can_go_back_and_forth(switched: Principal, manager: Principal) -> None:
    assert rollback.roll_back(manager).index.model == "fake-e5"
    assert rollback.roll_back(manager).index.model == "fake-light"
    assert studio_settings.get().local_model == "use-multilingual"
    assert _states() == {"fake-light": "active", "fake-e5": "retired"}


@pytest.mark.parametrize("purge", [False, True], ids=["trashed", "erased"])
def test_what_is_deleted_leaves_the_retired_index_as_well(switched: Principal, purge: bool) -> None:
    memories.delete(switched, Memory.objects.get(key="k7").pk, purge=purge)
    assert (_held(_index("fake-e5")), _held(_index("fake-light"))) == (19, 19)


def test_new_memories_are_not_marked_for_a_retired_index(
    switched: Principal, remember: Remember
) -> None:
    remember(switched, "late tea", key="late")
    assert set(VectorMark.objects.values_list("index__model", flat=True)) == {"fake-light"}


def test_while_a_model_is_built_going_back_gives_it_up(
    alice: Principal, manager: Principal, remember: Remember, work: Work, source: WatchedEmbedding
) -> None:
    studio_settings.update(manager, LIGHT)
    remember(alice, "likes tea")
    work()
    source.before = outage
    studio_settings.update(manager, E5)
    work()
    assert _states() == {"fake-light": "active", "fake-e5": "building"}
    done = rollback.roll_back(manager)
    assert (done.index.model, done.is_active) == ("fake-light", True)
    assert _states() == {"fake-light": "active"}
    assert studio_settings.get().local_model == "use-multilingual"


def test_a_change_of_mind_while_going_back_keeps_the_retired_index(
    switched: Principal,
    manager: Principal,
    remember: Remember,
    work: Work,
    source: WatchedEmbedding,
) -> None:
    retired_at = _index("fake-e5").retired_at
    remember(switched, "a new note", key="new")
    work()

    def change_mind(_texts: Sequence[str]) -> None:
        source.before = lambda texts: None
        studio_settings.update(manager, LIGHT)

    source.before = change_mind
    rollback.roll_back(manager)
    work()
    earlier = _index("fake-e5")
    assert _states() == {"fake-light": "active", "fake-e5": "retired"}
    assert (earlier.retired_at, earlier.needs_check) == (retired_at, False)
    assert not earlier.marks.exists()


def test_a_third_model_takes_the_place_of_the_retired_one(
    switched: Principal, manager: Principal, work: Work, settings: Any
) -> None:
    settings.MEMORY_LOCAL_SOURCES = {
        **settings.MEMORY_LOCAL_SOURCES,
        "all-minilm-l6-v2-int8": "memory.tests.sources.fake",
    }
    gone = _index("fake-e5")
    studio_settings.update(manager, {"localModel": "all-minilm-l6-v2-int8"})
    work()
    states = VectorIndex.objects.exclude(pk=gone.pk).values_list("model", "state")
    assert dict(states) == {"fake-e5": "active", "fake-light": "retired"}
    assert not VectorIndex.objects.filter(pk=gone.pk).exists()
    assert _held(gone) == 0


def test_a_revival_that_broke_off_is_gone_on_with(
    switched: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    remember(switched, "a new note", key="new")
    work()
    studio_settings.update(manager, E5)
    revived = indexes.target_index()
    assert revived is not None
    assert (revived.needs_check, revived.marks.count()) == (True, 0)
    assert indexes.switch(revived) is False, "nobody knows yet what it lacks"
    assert _states()["fake-light"] == "active"
    work()
    assert _states() == BACK
    assert wiring.store_for(revived).count() == 21


def test_a_retired_index_is_dropped_after_a_week(switched: Principal, manager: Principal) -> None:
    index = _index("fake-e5")
    housekeeping.tick()
    assert embedding.coverage().retired == index.signature
    VectorIndex.objects.filter(pk=index.pk).update(retired_at=now() - timedelta(days=7, seconds=1))
    housekeeping.tick()
    assert _states() == {"fake-light": "active"}
    assert _held(index) == 0
    assert embedding.coverage().retired is None
    with pytest.raises(NotFound):
        rollback.roll_back(manager)


def test_it_can_be_dropped_now(switched: Principal, manager: Principal) -> None:
    assert rollback.drop_now(manager) == 1
    assert _states() == {"fake-light": "active"}
    assert AuditEntry.objects.filter(action="engine.drop_retired").exists()
    with pytest.raises(NotFound, match="no earlier index"):
        rollback.drop_now(manager)


def test_a_model_that_is_gone_is_said_and_changes_nothing(
    switched: Principal, manager: Principal, settings: Any
) -> None:
    settings.MEMORY_LOCAL_SOURCES = {"use-multilingual": "memory.tests.sources.fake_light"}
    wiring.reset()
    with pytest.raises(TierDown, match="fake-e5 of the earlier index is no longer available"):
        rollback.roll_back(manager)
    assert _states() == {"fake-light": "active", "fake-e5": "retired"}
    assert studio_settings.get().local_model == "use-multilingual"


def test_settings_that_were_not_kept_are_replaced_by_the_models_name(
    switched: Principal, manager: Principal
) -> None:
    rollback.roll_back(manager)
    VectorIndex.objects.update(made_by={})
    rollback.roll_back(manager)
    chosen = studio_settings.get()
    assert (chosen.embedding_source, chosen.local_model) == ("transformers", "use-multilingual")


def test_an_index_keeps_the_settings_in_force_when_it_was_left(
    switched: Principal, manager: Principal
) -> None:
    rollback.roll_back(manager)
    studio_settings.update(manager, {"customApiKey": "s3cret-7"})
    studio_settings.update(manager, LIGHT)
    kept = _index("fake-e5").made_by
    sealed = kept["memoryEmbeddingCustomApiKey"]
    assert "s3cret-7" not in str(kept)
    assert secretbox.open_sealed(sealed) == "s3cret-7"


def test_an_ordinary_key_may_not_go_back(switched: Principal) -> None:
    with pytest.raises(Forbidden):
        rollback.roll_back(switched)
    with pytest.raises(Forbidden):
        rollback.drop_now(switched)


def test_a_switch_that_another_process_has_made_is_not_made_again(
    switched: Principal, manager: Principal
) -> None:
    index = _index("fake-e5")
    rollback.roll_back(manager)
    assert indexes.switch(index) is True
    assert _states() == BACK


def test_a_forced_reindex_leaves_the_retired_index_alone(
    switched: Principal, manager: Principal, work: Work
) -> None:
    reindex.start(manager, force=True)
    assert set(VectorMark.objects.values_list("index__model", flat=True)) == {"fake-light"}
    work()
    Job.objects.update(finished_at=None)
    assert embedding.resume() is False
