"""The job that sends what waits for one webhook, and what follows from each attempt.

An event is tried nine times within some 28 hours. A receiver that does not answer is left alone
as a whole; one that fails for three days, or says that it is gone, is switched off.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet

from memory import jobs, measured, secretbox, subscriptions
from memory.clock import now
from memory.models import Webhook, WebhookDelivery
from memory.services.webhooks import bodies, outbound, signing
from memory.services.webhooks.events import KIND, send_soon
from memory.services.webhooks.outbound import Outcome

PAUSES: Final = tuple(
    timedelta(seconds=seconds) for seconds in (30, 120, 600, 1_800, 7_200, 18_000, 36_000, 36_000)
)
"""Before each further attempt, give or take a fifth."""
MOST_ATTEMPTS: Final = len(PAUSES) + 1
LONGEST_PAUSE: Final = timedelta(hours=1)
"""So long a receiver is left alone at most, unless it asks for more."""
LONGEST_ASKED: Final = timedelta(hours=12)
FAILURES_IN_A_ROW: Final = 5
"""Refusals after which a receiver that answers is left alone as well."""
OFF_AFTER: Final = timedelta(days=3)
OFF_FAILURES: Final = 10
SLICE_S: Final = 20.0
"""So long a job sends before others have their turn."""
BATCH: Final = 50
KEPT: Final = timedelta(days=30)
KEPT_ROWS: Final = 10_000

State = WebhookDelivery.State
_chance: Final = random.SystemRandom()


def run(context: jobs.JobContext) -> dict[str, Any]:
    """Handler of the job ``webhook``: send what is due, as long as its turn lasts."""
    sent = failed = 0
    began = time.monotonic()
    webhook = uuid.UUID(context.params["webhook"])
    while time.monotonic() - began < SLICE_S:
        due = list(_due(webhook).select_related("owner")[:BATCH])
        if not due:
            break
        for row in due:
            hook = _ready(webhook)
            if hook is None or time.monotonic() - began >= SLICE_S:
                break
            is_sent = attempt(hook, row)
            sent, failed = sent + is_sent, failed + (not is_sent)
            context.progress(sent + failed, sent + failed)
    return {"webhook": str(webhook), "sent": sent, "failed": failed}


def attempt(hook: Webhook, row: WebhookDelivery, *, is_last: bool = False) -> bool:
    """Send one event once and note what came of it; whether the receiver has it.

    ``is_last`` makes it the only attempt, as of a test.
    """
    content = bodies.body(hook, row)
    secret = secretbox.open_sealed(hook.secret)
    if secret:
        headers = signing.headers(secret, row.message_id, now(), content)
        found = outbound.post(hook.url, content, headers, is_trusted=hook.is_trusted)
    else:
        # Sealed by another installation: whatever is sent unsigned would be refused.
        found = Outcome("secret_unreadable")
    measured.WEBHOOK_ATTEMPTS.add(_group(found))
    with transaction.atomic():
        _note_row(row, found, is_last=is_last)
        _note_hook(hook, found)
    return not found.error


def _group(found: Outcome) -> str:
    """What came of an attempt: ``sent``, ``4xx``, ``5xx``, or why there was no answer."""
    if not found.error:
        return "sent"
    if found.status is not None:
        return f"{found.status // 100}xx"
    return found.error.partition(":")[0]


def resume() -> int:
    """Have everything sent that is due by now; how many webhooks."""
    due = WebhookDelivery.objects.filter(state=State.WAITING, due_at__lte=now())
    waiting = list(due.order_by().values_list("webhook_id", flat=True).distinct())
    if not waiting:
        return 0
    ready = Webhook.objects.filter(subscriptions.serving(), _not_paused(), pk__in=waiting)
    for hook in ready:
        send_soon(hook.pk)
    return len(ready)


def prune() -> int:
    """Forget deliveries of more than 30 days, and beyond the newest 10,000; how many."""
    ended = WebhookDelivery.objects.exclude(state=State.WAITING)
    gone = WebhookDelivery.objects.filter(created_at__lt=now() - KEPT).delete()[0]
    newest = WebhookDelivery.objects.order_by("-pk").values_list("pk", flat=True)
    beyond = newest[KEPT_ROWS : KEPT_ROWS + 1].first()
    if beyond is not None:
        gone += ended.filter(pk__lte=beyond).delete()[0]
    return gone


def pause_before(attempts: int, asked_s: float, chance: float) -> timedelta:
    """The wait after so many attempts. ``chance`` (0 to 1) spreads it by a fifth either way."""
    wait = PAUSES[min(attempts, len(PAUSES)) - 1] * (0.8 + 0.4 * chance)
    return max(wait, min(timedelta(seconds=min(asked_s, 10**9)), LONGEST_ASKED))


def _ready(webhook: uuid.UUID) -> Webhook | None:
    """The webhook, while it may be sent to."""
    return Webhook.objects.filter(subscriptions.serving(), _not_paused(), pk=webhook).first()


def _not_paused() -> Q:
    return Q(paused_until__isnull=True) | Q(paused_until__lte=now())


def _due(webhook: uuid.UUID) -> QuerySet[WebhookDelivery]:
    """What is to be sent now: what is new first, so that one bad event holds up no other."""
    rows = WebhookDelivery.objects.filter(webhook=webhook, state=State.WAITING, due_at__lte=now())
    if _ready(webhook) is None:
        return rows.none()
    return rows.order_by("attempts", "pk")


def _note_row(row: WebhookDelivery, found: Outcome, *, is_last: bool) -> None:
    row.attempts += 1
    row.status_code, row.error_code = found.status, found.error[:60]
    row.latency_ms, row.attempted_at, row.due_at = found.latency_ms, now(), None
    if not found.error:
        row.state = State.SENT
    elif is_last or row.attempts >= MOST_ATTEMPTS or found.status == outbound.GONE:
        row.state = State.FAILED
    else:
        row.due_at = now() + pause_before(row.attempts, found.retry_after_s, _chance.random())
    # By hand: a log that was pruned meanwhile stays so.
    WebhookDelivery.objects.filter(pk=row.pk).update(
        state=row.state,
        attempts=row.attempts,
        status_code=row.status_code,
        error_code=row.error_code,
        latency_ms=row.latency_ms,
        attempted_at=row.attempted_at,
        due_at=row.due_at,
    )


def _note_hook(hook: Webhook, found: Outcome) -> None:
    before = (hook.is_enabled, hook.paused_until)
    if not found.error:
        hook.failures, hook.failing_since, hook.paused_until, hook.last_error = 0, None, None, ""
        hook.last_sent_at = now()
    else:
        _count_failure(hook, found, now())
    values = (
        "failures",
        "failing_since",
        "paused_until",
        "last_error",
        "last_sent_at",
        *(("is_enabled", "disabled_reason") if not hook.is_enabled else ()),
    )
    Webhook.objects.filter(pk=hook.pk).update(**{name: getattr(hook, name) for name in values})
    if before != (hook.is_enabled, hook.paused_until):
        subscriptions.reset()


def _count_failure(hook: Webhook, found: Outcome, moment: datetime) -> None:
    hook.failures += 1
    hook.failing_since = hook.failing_since or moment
    hook.last_error = found.error[:60]
    if found.status == outbound.GONE:
        hook.is_enabled, hook.disabled_reason = False, Webhook.Off.GONE
    elif hook.failures >= OFF_FAILURES and hook.failing_since <= moment - OFF_AFTER:
        hook.is_enabled, hook.disabled_reason = False, Webhook.Off.FAILING
    elif found.is_silent or hook.failures >= FAILURES_IN_A_ROW:
        asked = min(timedelta(seconds=min(found.retry_after_s, 10**9)), LONGEST_ASKED)
        wait = pause_before(hook.failures, 0, _chance.random())
        hook.paused_until = moment + max(min(wait, LONGEST_PAUSE), asked)


def _look_again(result: Mapping[str, Any]) -> None:
    """Go on when the turn was over, or when an event came after the last look."""
    webhook = uuid.UUID(result["webhook"])
    if _due(webhook).exists():
        send_soon(webhook)


jobs.last_look(KIND, _look_again)
