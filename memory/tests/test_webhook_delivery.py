"""What is sent to webhooks, and what becomes of it when the receiver fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from engine.testing.fake_provider import Answer
from memory.clock import now
from memory.models import Job, Memory, Webhook, WebhookDelivery
from memory.principal import Principal
from memory.services import memories
from memory.services.webhooks import delivering, hooks, log, outbound
from memory.services.webhooks.hooks import WebhookDraft
from memory.tests.conftest import Remember, Work
from memory.tests.receiver import Receiver, later, receiving

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that takes what is signed."""
    with receiving() as one:
        yield one


def _last() -> WebhookDelivery:
    row = WebhookDelivery.objects.first()
    assert row is not None
    return row


def _summary(row: WebhookDelivery) -> tuple[str, int, int | None, str]:
    return row.state, row.attempts, row.status_code, row.error_code


def test_a_new_memory_reaches_the_receiver_signed(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    hook = receiver.of(manager)
    memory = remember(manager, "likes tea")
    work()
    assert receiver.bodies[0]["type"] == "memory.created"
    assert receiver.bodies[0]["data"] == {
        "apiKeyId": str(memory.api_key.uid),
        "apiKeyName": "manager",
        "memories": [{"id": str(memory.pk), "revision": 1}],
        "count": 1,
    }
    assert "tea" not in str(receiver.bodies)
    assert _summary(_last()) == ("sent", 1, 204, "")
    assert receiver.ids == [_last().message_id]
    hook.refresh_from_db()
    assert hook.last_sent_at is not None


def test_whole_memories_are_sent_only_where_they_are_asked_for(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    receiver.of(manager, include_content=True)
    memory = remember(manager, "likes tea", key="drink")
    memories.delete(manager, remember(manager, "gone at once").pk)
    work()
    sent = {body["type"]: body["data"]["memories"][0] for body in receiver.bodies[::-1]}
    assert sent["memory.created"]["memory"]["content"] == "likes tea"
    assert sent["memory.created"]["id"] == str(memory.pk)
    assert "gone at once" not in str(receiver.bodies), "a text that is gone is not sent"
    assert "tea" not in str(WebhookDelivery.objects.values()), "and the log keeps none"


def test_bodies_stay_within_their_size(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    receiver.of(manager, include_content=True, events=("memory.updated",))
    rows = [remember(manager, "word " * 4_000, key=f"k{place}") for place in range(20)]
    from memory.services import batches

    batches.carry_out(manager, [batches.Change(str(row.pk), {"is_pinned": True}) for row in rows])
    work()
    whole = ["memory" in item for item in receiver.bodies[0]["data"]["memories"]]
    assert len(whole) == 20
    assert 5 < sum(whole) < 20
    assert len(receiver.provider.requests[0].body) < 300 * 1024


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        pytest.param(Answer(500), 500, "http_500", id="an error"),
        pytest.param(Answer(404), 404, "http_404", id="nothing there"),
        pytest.param(
            Answer(302, headers={"Location": "http://169.254.169.254/"}),
            302,
            "redirect_refused",
            id="a redirect",
        ),
        pytest.param(Answer(drops=True), None, "connect_failed", id="a connection that breaks"),
    ],
)
def test_a_failed_attempt_is_noted_and_tried_again_under_the_same_id(
    manager: Principal,
    remember: Remember,
    work: Work,
    receiver: Receiver,
    answer: Answer,
    status: int | None,
    code: str,
) -> None:
    hook = receiver.of(manager)
    receiver.script.append(answer)
    remember(manager, "likes tea")
    work()
    assert _summary(_last()) == ("waiting", 1, status, code)
    hook.refresh_from_db()
    assert (hook.failures, hook.last_error) == (1, code)
    assert later(seconds=20) == 0, "it is not due before half a minute or so"
    assert later(seconds=20) == 1
    work()
    assert _summary(_last()) == ("sent", 2, 204, "")
    assert len(set(receiver.ids)) == 1
    hook.refresh_from_db()
    assert (hook.failures, hook.failing_since, hook.paused_until) == (0, None, None)


def test_a_receiver_that_never_answers_is_given_up_in_time(receiver: Receiver) -> None:
    receiver.script.append(Answer(is_silent=True))
    found = outbound.post(receiver.url, b"{}", {}, is_trusted=True, total_s=0.2)
    assert (found.error, found.status, found.is_silent) == ("timeout", None, True)


def test_nobody_waits_for_a_body_that_does_not_come(receiver: Receiver) -> None:
    receiver.script.append(Answer(200, hangs=True))
    assert outbound.post(receiver.url, b"{}", {}, is_trusted=True).error == ""


def test_an_answer_of_any_size_is_not_read(receiver: Receiver) -> None:
    receiver.script.append(Answer(200, b"x" * (1 << 20)))
    found = outbound.post(receiver.url, b"{}", {}, is_trusted=True)
    assert (found.error, found.status) == ("", 200)


def test_a_receiver_that_is_gone_is_switched_off_and_told_so(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    hook = receiver.of(manager)
    receiver.script.append(Answer(410))
    remember(manager, "likes tea")
    work()
    hook.refresh_from_db()
    assert (hook.is_enabled, hook.disabled_reason, hook.last_error) == (False, "gone", "http_410")
    assert _summary(_last()) == ("failed", 1, 410, "http_410")
    remember(manager, "likes cocoa")
    assert WebhookDelivery.objects.count() == 1
    hooks.update(manager, hook.pk, {"is_enabled": True})
    remember(manager, "likes water")
    work()
    assert _last().state == "sent"


def test_a_receiver_that_fails_for_days_is_switched_off(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    hook = receiver.of(manager)
    receiver.provider.respond = lambda request: Answer(500)
    for place in range(delivering.OFF_FAILURES):
        remember(manager, f"note {place}")
        later(hours=8)
        work()
    hook.refresh_from_db()
    assert (hook.is_enabled, hook.disabled_reason) == (False, "failing")
    assert hook.failures >= delivering.OFF_FAILURES


def test_failing_often_within_a_day_is_not_enough(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    hook = receiver.of(manager)
    receiver.provider.respond = lambda request: Answer(500)
    for place in range(12):
        remember(manager, f"note {place}")
        later(hours=1)
        work()
    hook.refresh_from_db()
    assert hook.is_enabled


def test_an_event_is_given_up_after_nine_attempts(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    receiver.of(manager)
    receiver.provider.respond = lambda request: Answer(500)
    remember(manager, "likes tea")
    for _attempt in range(12):
        work()
        later(hours=13)
    assert _summary(_last()) == ("failed", delivering.MOST_ATTEMPTS, 500, "http_500")
    assert len(set(receiver.ids)) == 1


def test_a_receiver_that_does_not_answer_is_left_alone_as_a_whole(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    receiver.of(manager)
    receiver.script.append(Answer(drops=True))
    remember(manager, "likes tea")
    work()
    remember(manager, "likes cocoa")
    assert not Job.objects.filter(kind="webhook", state="queued").exists()
    assert len(receiver.ids) == 1
    later(minutes=1)
    work()
    assert len(receiver.ids) == 3
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {"sent"}


def test_one_bad_event_holds_up_no_other(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    receiver.of(manager)
    receiver.script.append(Answer(400))
    for place in range(3):
        remember(manager, f"note {place}")
    work()
    states = WebhookDelivery.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["waiting", "sent", "sent"]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_wait_that_the_receiver_asks_for_is_honoured(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver, form: str
) -> None:
    hook = receiver.of(manager)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=5000), usegmt=True)
    wanted = {"seconds": "5000", "date": date}[form]
    receiver.script.append(Answer(429, headers={"Retry-After": wanted}))
    remember(manager, "likes tea")
    work()
    due = _last().due_at
    hook.refresh_from_db()
    assert due is not None
    assert hook.paused_until is not None
    for moment in (due, hook.paused_until):
        assert 4_900 < (moment - now()).total_seconds() < 5_010


def test_waits_grow_are_spread_and_have_a_bound() -> None:
    waits = [delivering.pause_before(attempts, 0, 0.5) for attempts in range(1, 20)]
    assert waits == sorted(waits)
    assert sum(waits[: delivering.MOST_ATTEMPTS - 1], timedelta()) > timedelta(hours=27)
    assert delivering.pause_before(1, 0, 0.0) == timedelta(seconds=24)
    assert delivering.pause_before(1, 0, 1.0) == timedelta(seconds=36)
    assert delivering.pause_before(1, 10**12, 0.5) == delivering.LONGEST_ASKED


def test_what_an_ordinary_key_asks_for_is_not_called_in_the_local_network(
    alice: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    hook, _secret = hooks.create(alice, WebhookDraft("app", "https://receiver.example/"))
    Webhook.objects.filter(pk=hook.pk).update(url=receiver.url)
    remember(alice, "likes tea")
    work()
    assert receiver.ids == []
    assert _last().error_code.startswith("url_blocked:")


def test_a_key_has_a_webhook_in_the_local_network_where_a_manager_says_so(
    alice: Principal, manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    receiver.of(manager, owner="alice")
    remember(alice, "likes tea")
    work()
    assert [body["data"]["apiKeyName"] for body in receiver.bodies] == ["alice"]


def test_a_test_is_sent_at_once_and_only_once(manager: Principal, receiver: Receiver) -> None:
    hook = receiver.of(manager)
    hooks.update(manager, hook.pk, {"is_enabled": False})
    assert _summary(log.test(manager, hook.pk)) == ("sent", 1, 204, "")
    assert receiver.bodies[0]["type"] == "webhook.test"
    receiver.script.append(Answer(500))
    assert _summary(log.test(manager, hook.pk)) == ("failed", 1, 500, "http_500")


def test_an_event_is_sent_again_under_its_id(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    receiver.of(manager)
    remember(manager, "likes tea")
    work()
    log.redeliver(manager, _last().uid)
    work()
    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1


def test_a_new_secret_signs_from_now_on(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    hook = receiver.of(manager)
    _hook, secret = hooks.rotate(manager, hook.pk)
    remember(manager, "likes tea")
    work()
    assert _last().error_code == "http_401"
    receiver.secret = secret
    later(minutes=1)
    work()
    assert _last().state == "sent"


def test_a_long_queue_is_sent_in_turns_and_to_its_end(
    manager: Principal, work: Work, receiver: Receiver
) -> None:
    receiver.of(manager)
    from memory.services import exchange

    records = [{"content": f"note {place}", "key": f"k{place}"} for place in range(6_000)]
    exchange.import_records(manager, records, owner=None)
    work()
    assert len(receiver.ids) == 60
    assert sum(body["data"]["count"] for body in receiver.bodies) == Memory.objects.count() == 6_000


def test_the_log_is_pruned_by_age_and_by_number(
    manager: Principal, remember: Remember, work: Work, receiver: Receiver
) -> None:
    hook = receiver.of(manager)
    for place in range(3):
        remember(manager, f"note {place}")
    work()
    old = WebhookDelivery.objects.order_by("pk").first()
    assert old is not None
    WebhookDelivery.objects.filter(pk=old.pk).update(created_at=now() - timedelta(days=31))
    assert delivering.prune() == 1
    rows = [
        WebhookDelivery(webhook=hook, event="memory.created", state="sent", created_at=now())
        for _place in range(delivering.KEPT_ROWS)
    ]
    WebhookDelivery.objects.bulk_create(rows, batch_size=500)
    assert delivering.prune() == 2
    assert WebhookDelivery.objects.count() == delivering.KEPT_ROWS
