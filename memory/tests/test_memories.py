"""Storing and changing memories: upsert by key, history, revert, collisions."""

from __future__ import annotations

from typing import Any

import pytest

from memory.errors import Conflict, Forbidden, NotFound
from memory.models import ApiKey, AuditEntry, Memory
from memory.principal import Principal
from memory.services import memories
from memory.services.drafts import MemoryDraft
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember


def test_a_new_memory_has_its_defaults(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    assert (memory.type, memory.revision, memory.session_id) == ("factual", 1, "")
    assert (memory.is_pinned, memory.is_shared) == (False, False)
    assert memory.api_key.pk == alice.owner


def test_upsert_by_key_updates_the_live_row_and_says_so(alice: Principal) -> None:
    first, created = memories.create(alice, MemoryDraft("likes tea", "drink", session_id="s1"))
    second, created_again = memories.create(
        alice,
        MemoryDraft("likes coffee", "drink", type="episodic", session_id="s2"),
    )
    assert (created, created_again) == (True, False)
    assert second.pk == first.pk
    assert (second.content, second.type, second.session_id) == ("likes coffee", "episodic", "s2")
    assert Memory.objects.count() == 1


def test_store_02_upsert_merges_metadata_shallowly(alice: Principal, remember: Remember) -> None:
    remember(alice, "one", key="k", metadata={"a": 1, "b": 1, "deep": {"x": 1}})
    memory = remember(alice, "two", key="k", metadata={"b": 2, "deep": {"y": 2}})
    assert memory.metadata == {"a": 1, "b": 2, "deep": {"y": 2}}


def test_an_upsert_never_unpins_or_unshares(manager: Principal, remember: Remember) -> None:
    remember(manager, "one", key="k", is_pinned=True, is_shared=True, occurred_at=days_ago(9))
    memory = remember(manager, "two", key="k")
    assert (memory.is_pinned, memory.is_shared) == (True, True)
    assert memory.occurred_at is not None


def test_the_same_key_of_two_owners_is_two_memories(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    assert remember(alice, "hers", key="k").pk != remember(bob, "his", key="k").pk


def test_blanks_around_a_key_do_not_make_another_memory(
    alice: Principal, remember: Remember
) -> None:
    assert remember(alice, "one", key="k").pk == remember(alice, "two", key="  k ").pk


def test_a_key_that_comes_twice_in_one_batch_is_merged_in_order(alice: Principal) -> None:
    key = ApiKey.objects.get(name="alice")
    stored = memories.store_many(
        alice, key, [MemoryDraft("one", "k"), MemoryDraft("other", "o"), MemoryDraft("two", "k")]
    )
    assert [item.created for item in stored] == [True, True, False]
    assert Memory.objects.get(key="k").content == "two"
    assert [row.content for row in memories.history(alice, stored[0].memory.pk)] == ["one"]


def test_history_keeps_every_earlier_text_newest_first(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "one", key="k", metadata={"v": 1})
    remember(alice, "two", key="k", metadata={"v": 2})
    memories.update(alice, memory.pk, {"content": "three", "key": "k3"})
    earlier = memories.history(alice, memory.pk)
    assert [(row.revision, row.content, row.key) for row in earlier] == [
        (2, "two", "k"),
        (1, "one", "k"),
    ]
    assert [row.action for row in earlier] == ["edit", "upsert"]
    assert earlier[1].metadata == {"v": 1}
    assert {row.replaced_by for row in earlier} == {"key:alice"}


def test_revert_brings_an_earlier_state_back_and_keeps_the_present_one(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "one", key="k", type="semantic", session_id="s")
    memories.update(alice, memory.pk, {"content": "two", "type": "episodic", "session_id": ""})
    back = memories.revert(alice, memory.pk, 1)
    assert (back.content, back.type, back.session_id, back.revision) == ("one", "semantic", "s", 3)
    assert [row.content for row in memories.history(alice, memory.pk)] == ["two", "one"]
    assert ask(alice, "one") == ["one"]


def test_revert_to_a_revision_that_never_was_is_not_found(
    alice: Principal, remember: Remember
) -> None:
    with pytest.raises(NotFound):
        memories.revert(alice, remember(alice, "one").pk, 7)


def test_revert_collides_when_its_old_key_is_taken(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "one", key="old")
    memories.update(alice, memory.pk, {"key": "new"})
    remember(alice, "other", key="old")
    with pytest.raises(Conflict) as refused:
        memories.revert(alice, memory.pk, 1)
    assert refused.value.code == "key_taken"


def test_a_change_to_a_key_that_another_live_row_has_is_a_conflict(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "one", key="a")
    memory = remember(alice, "two", key="b")
    with pytest.raises(Conflict) as refused:
        memories.update(alice, memory.pk, {"key": "a"})
    assert (refused.value.code, list(refused.value.fields)) == ("key_taken", ["key"])
    assert Memory.objects.get(pk=memory.pk).key == "b"
    assert memories.history(alice, memory.pk) == []


def test_a_stale_revision_is_a_conflict_and_changes_nothing(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "one")
    memories.update(alice, memory.pk, {"content": "two"}, expected_revision=1)
    with pytest.raises(Conflict) as refused:
        memories.update(alice, memory.pk, {"content": "three"}, expected_revision=1)
    assert refused.value.code == "stale"
    assert Memory.objects.get(pk=memory.pk).content == "two"


def test_an_update_replaces_metadata(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "one", metadata={"a": 1, "b": 1})
    assert memories.update(alice, memory.pk, {"metadata": {"b": 2}}).metadata == {"b": 2}


def test_an_update_of_the_text_counts_its_tokens_again(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "aaaa")
    assert memory.tokens == 1
    assert memories.update(alice, memory.pk, {"content": "a" * 41}).tokens == 11


def test_an_update_ignores_what_nobody_may_change(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "one")
    before = memory.created_at
    changed = memories.update(alice, memory.pk, {"created_at": days_ago(99), "revision": 40})
    assert (changed.created_at, changed.revision) == (before, 1)


def test_an_edit_starts_retention_anew(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "one tea", retained_at=days_ago(40))
    assert ask(alice, "tea") == []
    memories.update(alice, memory.pk, {"content": "two tea"})
    assert ask(alice, "tea") == ["two tea"]


def test_when_it_happened_is_kept_apart_from_when_it_was_stored(
    alice: Principal, remember: Remember
) -> None:
    long_ago = days_ago(4000)
    memory = remember(alice, "graduated", occurred_at=long_ago)
    assert memory.occurred_at == long_ago
    assert memory.created_at > days_ago(1)
    assert ask(alice, "graduated") == ["graduated"]


def test_a_session_write_without_an_owner_goes_to_the_default_key(
    first_start: None, remember: Remember
) -> None:
    studio = Principal("studio", "studio", frozenset({"read", "write", "manage"}))
    assert remember(studio, "noted").api_key.is_default


def test_an_ordinary_key_cannot_write_for_another(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    with pytest.raises(Forbidden) as refused:
        remember(alice, "planted", owner="bob")
    assert refused.value.code == "not_owner"
    assert Memory.objects.count() == 0


def test_a_manager_may_write_for_another_by_name_or_id(
    manager: Principal, bob: Principal, remember: Remember
) -> None:
    by_name = remember(manager, "one", owner="bob")
    by_id = remember(manager, "two", owner=str(by_name.api_key.uid))
    assert {by_name.api_key.pk, by_id.api_key.pk} == {bob.owner}
    with pytest.raises(NotFound):
        remember(manager, "three", owner="nobody")


def test_only_a_manager_shares_a_memory_with_everyone(
    alice: Principal, manager: Principal, remember: Remember
) -> None:
    with pytest.raises(Forbidden):
        remember(alice, "for all", is_shared=True)
    memory = remember(alice, "hers")
    with pytest.raises(Forbidden):
        memories.update(alice, memory.pk, {"is_shared": True})
    assert memories.update(manager, memory.pk, {"is_shared": True}).is_shared
    kept = memories.update(alice, memory.pk, {"content": "hers still", "is_shared": True})
    assert kept.is_shared


@pytest.mark.parametrize("scopes", [(), ("read",), ("chat",)])
def test_writing_needs_the_scope(alice: Principal, scopes: tuple[str, ...]) -> None:
    weak = Principal("key", "alice", frozenset(scopes), owner=alice.owner)
    with pytest.raises(Forbidden):
        memories.create(weak, MemoryDraft("text", "key"))


def test_every_write_leaves_an_audit_row_without_text(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "a very private sentence", key="private")
    memories.update(alice, memory.pk, {"content": "another private sentence"})
    memories.delete(alice, memory.pk)
    memories.restore(alice, memory.pk)
    memories.delete(alice, memory.pk, purge=True)
    rows: list[Any] = list(AuditEntry.objects.filter(action__startswith="memory.").order_by("pk"))
    assert [row.action for row in rows] == [
        "memory.create",
        "memory.update",
        "memory.delete",
        "memory.restore",
        "memory.purge",
    ]
    assert {tuple(row.target_ids) for row in rows} == {(str(memory.pk),)}
    assert not any("private" in f"{row.detail}{row.target_ids}{row.actor}" for row in rows)
