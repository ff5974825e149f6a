"""What happened is noted for webhooks in the transaction of the change, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memory import jobs, subscriptions
from memory.models import Job, Memory, Webhook, WebhookDelivery
from memory.principal import SYSTEM, Principal
from memory.services import batches, clearing, compaction, exchange, keys, memories
from memory.services.clearing import Wanted
from memory.services.compaction import CompactRequest
from memory.services.drafts import MemoryDraft
from memory.services.webhooks import events, hooks
from memory.services.webhooks.hooks import WebhookDraft
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember

pytestmark = pytest.mark.django_db

ADDRESS = "https://receiver.example/hook"
Noted = Callable[[], list[tuple[str, int]]]


@pytest.fixture
def hook(alice: Principal) -> Webhook:
    """A webhook of alice that hears of everything."""
    return hooks.create(alice, WebhookDraft("app", ADDRESS))[0]


@pytest.fixture
def noted(hook: Webhook) -> Noted:
    """Events and the number of their items, in order."""
    rows = WebhookDelivery.objects.filter(webhook=hook).order_by("pk")
    return lambda: list(rows.all().values_list("event", "count"))


def test_creating_changing_and_deleting_a_memory_are_three_events(
    alice: Principal, remember: Remember, noted: Noted
) -> None:
    memory = remember(alice, "likes tea", key="drink")
    remember(alice, "likes cocoa", key="drink")
    memories.update(alice, memory.pk, {"content": "likes water"})
    memories.delete(alice, memory.pk)
    memories.restore(alice, memory.pk)
    memories.delete(alice, memory.pk)
    memories.delete(alice, memory.pk, purge=True)
    assert [event for event, _count in noted()] == [
        "memory.created",
        "memory.updated",
        "memory.updated",
        "memory.deleted",
        "memory.restored",
        "memory.deleted",
    ]


def test_a_delivery_holds_ids_and_revisions_and_no_text(
    alice: Principal, remember: Remember, hook: Webhook
) -> None:
    memory = remember(alice, "a secret wish", key="wish")
    memories.update(alice, memory.pk, {"content": "another wish"})
    rows = WebhookDelivery.objects.filter(webhook=hook).order_by("pk")
    assert [row.items for row in rows] == [
        [{"id": str(memory.pk), "revision": 1}],
        [{"id": str(memory.pk), "revision": 2}],
    ]
    assert "wish" not in str(rows.values())


def test_a_write_that_is_rolled_back_is_told_to_nobody(
    alice: Principal, remember: Remember, noted: Noted
) -> None:
    before = Job.objects.count()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        remember(alice, "likes tea")
        assert noted() == [("memory.created", 1)]
        raise ZeroDivisionError
    assert noted() == []
    assert Job.objects.count() == before


def test_a_write_without_any_webhook_costs_no_query(alice: Principal, remember: Remember) -> None:
    remember(alice, "warms what is read once")
    with CaptureQueriesContext(connection) as asked:
        remember(alice, "likes tea")
    assert not [one for one in asked if "webhook" in one["sql"].lower()]


def test_a_write_that_a_webhook_hears_of_costs_a_row_and_a_job(
    alice: Principal, remember: Remember, hook: Webhook
) -> None:
    remember(alice, "warms what is read once")
    with CaptureQueriesContext(connection) as asked:
        remember(alice, "likes tea")
    about = [one["sql"] for one in asked if "webhook" in one["sql"].lower()]
    assert len(about) == 2, "the row, and the job that waits already"
    assert Job.objects.filter(kind="webhook").count() == 1


def test_a_key_hears_of_its_own_memories_and_a_manager_of_all(
    alice: Principal, bob: Principal, manager: Principal, remember: Remember, noted: Noted
) -> None:
    every, _secret = hooks.create(manager, WebhookDraft("all", ADDRESS), all_owners=True)
    own, _secret = hooks.create(manager, WebhookDraft("own", ADDRESS))
    remember(alice, "likes tea")
    remember(bob, "likes cocoa")
    assert noted() == [("memory.created", 1)]
    assert WebhookDelivery.objects.filter(webhook=every).count() == 2
    assert WebhookDelivery.objects.filter(webhook=own).count() == 0


def test_a_webhook_hears_only_of_the_events_that_it_wants(
    alice: Principal, remember: Remember
) -> None:
    hook, _secret = hooks.create(alice, WebhookDraft("app", ADDRESS, ("memory.deleted",)))
    memories.delete(alice, remember(alice, "likes tea").pk)
    assert [row.event for row in WebhookDelivery.objects.filter(webhook=hook)] == ["memory.deleted"]


def test_a_webhook_that_is_off_or_of_a_revoked_key_hears_of_nothing(
    alice: Principal, remember: Remember, hook: Webhook, noted: Noted
) -> None:
    hooks.update(alice, hook.pk, {"is_enabled": False})
    remember(alice, "likes tea")
    hooks.update(alice, hook.pk, {"is_enabled": True})
    remember(alice, "likes cocoa")
    keys.revoke(SYSTEM, "alice")
    subscriptions.reset()
    remember(SYSTEM, "likes water", owner="alice")
    assert noted() == [("memory.created", 1)]


def test_an_import_is_told_a_hundred_memories_at_a_time(alice: Principal, noted: Noted) -> None:
    records = [{"content": f"note {place}", "key": f"k{place}"} for place in range(1_234)]
    exchange.import_records(alice, records, owner=None)
    found = noted()
    assert sum(count for _event, count in found) == 1_234
    assert max(count for _event, count in found) == 100
    assert len(found) == 5 + 5 + 3
    assert Job.objects.filter(kind="webhook").count() == 1


def test_a_batch_is_told_in_few_deliveries_without_what_was_refused(
    alice: Principal, remember: Remember, noted: Noted
) -> None:
    rows = [remember(alice, f"note {place}") for place in range(6)]
    WebhookDelivery.objects.all().delete()
    items: list[batches.Item] = [batches.Change(str(row.pk), {"is_pinned": True}) for row in rows]
    items.append(batches.Change(str(rows[0].pk), {"content": "a"}, revision=99))
    items.append(batches.Remove(str(rows[1].pk)))
    items.append(batches.Create(MemoryDraft(content="new", key="new")))
    batches.carry_out(alice, items)
    assert noted() == [("memory.updated", 6), ("memory.deleted", 1), ("memory.created", 1)]


def test_a_memory_is_never_told_of_out_of_its_order(
    alice: Principal, remember: Remember, noted: Noted
) -> None:
    gone = remember(alice, "goes first")
    WebhookDelivery.objects.all().delete()
    with transaction.atomic(), events.together():
        memories.delete(alice, gone.pk)
        memory = remember(alice, "comes and goes")
        memories.delete(alice, memory.pk)
    assert noted() == [("memory.deleted", 1), ("memory.created", 1), ("memory.deleted", 1)]


def test_clearing_and_compaction_are_told_and_so_is_their_undo(
    alice: Principal, remember: Remember, noted: Noted
) -> None:
    for place in range(3):
        remember(alice, f"old note {place}", created_at=days_ago(90))
    WebhookDelivery.objects.all().delete()
    made = compaction.run_now(alice, CompactRequest(older_than_days=30)).compactions[0]
    compaction.undo(alice, str(made.pk))
    clearing.clear(alice, Wanted())
    assert noted() == [
        ("memory.compacted", 3),
        ("memory.created", 1),
        ("job.finished", 1),
        ("memory.deleted", 1),
        ("memory.restored", 3),
        ("memory.deleted", 3),
    ]


def test_the_end_of_a_job_is_told_to_its_owner(
    alice: Principal, bob: Principal, hook: Webhook
) -> None:
    for principal, state in ((alice, "succeeded"), (bob, "succeeded"), (alice, "cancelled")):
        order = jobs.Order("count", owner_id=principal.owner, requested_by=principal.label)
        job = jobs.enqueue(order, dispatch=False)
        if state == "cancelled":
            jobs.cancel(job)
        else:
            jobs.run(job.pk, {"count": lambda context: {}})
    told = [row.items[0] for row in WebhookDelivery.objects.filter(webhook=hook).order_by("pk")]
    assert [(item["kind"], item["state"]) for item in told] == [
        ("count", "succeeded"),
        ("count", "cancelled"),
    ]


def test_jobs_that_follow_every_write_are_told_to_nobody(
    alice: Principal, remember: Remember, noted: Noted
) -> None:
    remember(alice, "likes tea")
    job = Job.objects.get(kind="reindex")
    jobs.run(job.pk, {"reindex": lambda context: {"pending": 0}})
    assert ("job.finished", 1) not in noted()


def test_a_webhook_that_is_removed_while_a_memory_is_written_does_no_harm(
    alice: Principal, remember: Remember, hook: Webhook
) -> None:
    subscriptions.current()
    Webhook.objects.filter(pk=hook.pk).delete()
    remember(alice, "likes tea")
    assert Memory.objects.count() == 1
