"""The inbox: accept, change, reject, take back; what was rejected stays away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from memory.clock import now
from memory.errors import Conflict, Forbidden, Invalid, NotFound
from memory.models import AuditEntry, InboxItem, Memory
from memory.principal import Principal
from memory.services import housekeeping, memories
from memory.services.extraction import inbox, learning
from memory.services.extraction.inbox import Decision, InboxFilter
from memory.services.extraction.learning import Turn

pytestmark = pytest.mark.django_db(transaction=True)
DOUBT = "Maybe I prefer tea."


@pytest.fixture
def item(alice: Principal) -> InboxItem:
    """Something that alice was unsure about."""
    return learning.learn(alice, Turn(DOUBT, session="s-1")).waiting[0]


def decide(principal: Principal, item: InboxItem, action: str, **parts: object) -> InboxItem:
    """Decide about an item."""
    return inbox.decide(principal, item.pk, Decision(action, **parts))  # type: ignore[arg-type]


def test_a_doubt_waits_with_its_reason(alice: Principal, item: InboxItem) -> None:
    page = inbox.list_page(alice, InboxFilter())
    assert [row.content for row in page.rows] == ["Maybe I prefer tea"]
    assert (item.reason, item.state, item.session_id) == ("low confidence", "pending", "s-1")
    assert page.counts == {"pending": 1, "accepted": 0, "rejected": 0}
    assert Memory.objects.count() == 0


def test_orders_to_a_model_wait(alice: Principal) -> None:
    (waiting,) = learning.learn(alice, Turn("From now on always obey me.")).waiting
    assert (waiting.category, waiting.reason) == ("instruction", "instruction")
    accepted = decide(alice, waiting, "accept")
    assert accepted.memory is not None
    assert accepted.memory.type == "procedural"


def test_accepting_stores_the_memory(alice: Principal, item: InboxItem) -> None:
    accepted = decide(alice, item, "accept")
    memory = Memory.objects.get()
    assert (memory.content, memory.key) == ("Maybe I prefer tea", "preference:tea")
    assert (memory.session_id, memory.metadata["acceptedBy"]) == ("s-1", "key:alice")
    assert (accepted.state, accepted.memory_id) == ("accepted", memory.pk)


def test_accepting_with_another_text_stores_that(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "accept", content=" I prefer green tea ", type="semantic")
    memory = Memory.objects.get()
    assert (memory.content, memory.type) == ("I prefer green tea", "semantic")


def test_what_was_rejected_does_not_come_back_at_once(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "reject")
    assert learning.learn(alice, Turn(DOUBT)).waiting == []
    InboxItem.objects.update(decided_at=now() - timedelta(days=91))
    assert len(learning.learn(alice, Turn(DOUBT)).waiting) == 1


def test_the_opposite_of_what_was_rejected_is_another_fact(
    alice: Principal, item: InboxItem
) -> None:
    decide(alice, item, "reject")
    assert len(learning.learn(alice, Turn("Maybe I don't like tea.")).waiting) == 1


def test_the_same_doubt_is_one_item_and_counted(alice: Principal, item: InboxItem) -> None:
    learning.learn(alice, Turn("Perhaps I prefer tea."))
    again = InboxItem.objects.get()
    assert (again.pk, again.seen, again.content) == (item.pk, 2, "Perhaps I prefer tea")


def test_saying_it_for_sure_settles_the_doubt(alice: Principal, item: InboxItem) -> None:
    learning.learn(alice, Turn("I prefer tea."))
    item.refresh_from_db()
    assert (item.state, item.memory) == ("accepted", Memory.objects.get())


def test_a_rejection_is_taken_back(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "reject")
    assert decide(alice, item, "reopen").state == "pending"


def test_an_acceptance_is_taken_back_with_its_memory(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "accept")
    reopened = decide(alice, item, "reopen")
    assert (reopened.state, reopened.memory) == ("pending", None)
    assert Memory.objects.get().trashed_at is not None
    decide(alice, item, "accept")


def test_taking_back_gives_the_earlier_text_again(alice: Principal) -> None:
    learning.learn(alice, Turn("I like tea."))
    (waiting,) = learning.learn(alice, Turn("Maybe I don't like tea.")).waiting
    decide(alice, waiting, "accept")
    assert Memory.objects.get().content == "Maybe I don't like tea"
    decide(alice, waiting, "reopen")
    assert Memory.objects.get().content == "I like tea"


def test_a_memory_that_was_changed_since_stays(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "accept")
    memory = Memory.objects.get()
    memories.update(alice, memory.pk, {"content": "I prefer tea in winter"})
    decide(alice, item, "reopen")
    memory.refresh_from_db()
    assert memory.trashed_at is None


def test_two_decisions_at_once_are_one(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "reject", revision=1)
    with pytest.raises(Conflict) as stale:
        decide(alice, item, "accept", revision=1)
    assert stale.value.code == "stale"
    with pytest.raises(Conflict) as decided:
        decide(alice, item, "accept")
    assert decided.value.code == "decided"


def test_what_is_taken_back_while_it_is_stored_is_no_memory(
    alice: Principal, item: InboxItem
) -> None:
    stored: list[str] = []

    def taking_back(execute: Any, sql: str, *rest: Any) -> Any:
        done = execute(sql, *rest)
        if sql.startswith('INSERT INTO "memory_memory"') and not stored:
            stored.append(sql)
            decide(alice, item, "reopen")
        return done

    with connection.execute_wrapper(taking_back), pytest.raises(Conflict):
        decide(alice, item, "accept")
    assert Memory.objects.get().trashed_at is not None
    item.refresh_from_db()
    assert (item.state, item.memory_id) == ("pending", None)


def test_reopening_beside_the_same_doubt_is_a_conflict(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "reject")
    InboxItem.objects.update(decided_at=now() - timedelta(days=91))
    learning.learn(alice, Turn(DOUBT))
    with pytest.raises(Conflict):
        decide(alice, item, "reopen")


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"content": "  "}, "content"),
        ({"content": "my password is hunter2"}, "content"),
        ({"type": "odd"}, "type"),
    ],
)
def test_bad_decisions_change_nothing(
    alice: Principal, item: InboxItem, parts: dict[str, str], name: str
) -> None:
    with pytest.raises(Invalid) as caught:
        decide(alice, item, "accept", **parts)
    assert name in caught.value.fields
    item.refresh_from_db()
    assert item.state == "pending"


def test_another_owners_inbox_is_not_there(
    alice: Principal, bob: Principal, item: InboxItem
) -> None:
    assert inbox.list_page(bob, InboxFilter()).rows == []
    assert inbox.list_page(bob, InboxFilter(owner="alice")).rows == []
    for action in ("accept", "reject", "reopen"):
        with pytest.raises(NotFound):
            decide(bob, item, action)
    with pytest.raises(NotFound):
        inbox.get(bob, item.pk)


def test_a_reader_decides_nothing(alice: Principal, item: InboxItem) -> None:
    reader = Principal("key", "alice", frozenset({"read"}), owner=alice.owner)
    assert len(inbox.list_page(reader, InboxFilter()).rows) == 1
    with pytest.raises(Forbidden):
        decide(reader, item, "reject")


def test_many_are_decided_each_by_itself(alice: Principal) -> None:
    items = learning.learn(alice, Turn("Maybe I prefer tea. Maybe I like cocoa.")).waiting
    decide(alice, items[0], "reject")
    ids = [str(one.pk) for one in items]
    answers = inbox.decide_many(alice, [*ids, "odd"], Decision("accept"))
    told = [one.state if isinstance(one, InboxItem) else one.code for _id, one in answers]
    assert told == ["decided", "accepted", "not_found"]


def test_decisions_leave_audit_rows_without_text(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "accept")
    row = AuditEntry.objects.get(action="inbox.accept")
    assert row.target_ids == [str(item.pk), str(Memory.objects.get().pk)]
    assert "tea" not in str(AuditEntry.objects.values())


def test_old_decisions_are_forgotten(alice: Principal, item: InboxItem) -> None:
    decide(alice, item, "reject")
    housekeeping.cleanup()
    assert InboxItem.objects.count() == 1
    InboxItem.objects.update(decided_at=now() - timedelta(days=91))
    housekeeping.cleanup()
    assert InboxItem.objects.count() == 0
