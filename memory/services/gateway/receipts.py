"""The receipt of one chat: filled while it passes, written down when it is over."""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from django.db import transaction

from engine.chat.reading import storable
from engine.types import Hit
from memory.clock import now
from memory.models import Trace
from memory.services import keys, retrieval
from memory.services.gateway import learning, meter
from memory.services.gateway.admission import Admission
from memory.services.gateway.learning import Turn
from memory.services.gateway.planning import TROUBLE, Plan, State

logger = logging.getLogger("memory.gateway")

MAX_MODEL: Final = 200
DIGITS: Final = 4
TIMED_OUT: Final = 504


class Outcome(StrEnum):
    """How a chat ended."""

    OK = "ok"
    REFUSED = "refused"
    """The upstream answered with an error, which was passed on."""
    UNREACHED = "unreached"
    BROKEN = "broken"
    """The upstream broke off in the middle."""
    LEFT = "left"
    """The client went before the end."""


@dataclass(slots=True)
class Receipt:
    """What is known of one chat so far. Durations in milliseconds from the beginning."""

    admission: Admission
    protocol: str
    model: str
    session: str = ""
    is_stream: bool = False
    provider: str = ""
    plan: Plan = field(default_factory=lambda: Plan(State.OFF))
    status: int = 0
    outcome: Outcome = Outcome.LEFT
    turn: Turn | None = None
    durations: dict[str, float] = field(default_factory=dict)
    id: uuid.UUID = field(default_factory=uuid.uuid4)
    started: float = field(default_factory=time.perf_counter)

    @property
    def injected(self) -> tuple[str, ...]:
        """The ids of the memories in the request."""
        return self.plan.injected.ids if self.plan.injected else ()

    @property
    def tokens(self) -> int:
        """What they cost."""
        return self.plan.injected.tokens if self.plan.injected else 0

    @property
    def has_reached_nobody(self) -> bool:
        """Whether no upstream got the chat; one that did not answer in time got it."""
        return self.outcome is Outcome.UNREACHED and self.status != TIMED_OUT

    def mark(self, step: str) -> None:
        """Note that a step is over."""
        self.durations[step] = (time.perf_counter() - self.started) * 1000


def keep(receipt: Receipt) -> None:
    """Write a receipt down, count what it cost, and have the chat learnt from. Not in its way."""
    admission, plan = receipt.admission, receipt.plan
    with transaction.atomic():
        keys.mark_used(admission.key)
        if plan.view is not None:
            took_ms = plan.durations.get("retrieve", 0.0)
            owners = [admission.key]
            retrieval.account(admission.principal, plan.view, "client", owners, took_ms=took_ms)
        _meter(receipt)
        Trace.objects.create(**_columns(receipt))
    turn = receipt.turn
    if turn is not None and plan.state is not State.OPTED_OUT:
        turn = replace(
            turn,
            said=storable(turn.said),
            replied=storable(turn.replied),
            injected=tuple(note.text for note in plan.notes),
        )
        learning.learn(admission, turn, trace_id=receipt.id)


def _meter(receipt: Receipt) -> None:
    """Count the chat, and what its memories cost: nothing where nobody got it."""
    key, is_free = receipt.admission.key, receipt.has_reached_nobody
    meter.count(
        key,
        tokens=0 if is_free else receipt.tokens,
        is_injected=bool(receipt.injected) and not is_free,
        has_failed=receipt.plan.state in TROUBLE,
    )
    if is_free:
        meter.give_back(key, receipt.tokens)


def _columns(receipt: Receipt) -> dict[str, Any]:
    plan, view = receipt.plan, receipt.plan.view
    durations = {**plan.durations, **receipt.durations}
    return {
        "id": receipt.id,
        "at": now(),
        "owner": receipt.admission.key,
        "session_id": receipt.session,
        "protocol": receipt.protocol,
        "model": "".join(filter(str.isprintable, receipt.model))[:MAX_MODEL],
        "provider": receipt.provider,
        "is_stream": receipt.is_stream,
        "status": receipt.status,
        "outcome": receipt.outcome.value,
        "memory": plan.state.value,
        "retrieved": retrieved(plan),
        "injected": list(receipt.injected),
        "degraded": [[one.tier, one.code] for one in view.retrieval.degraded] if view else [],
        "place": plan.injected.place if plan.injected else "",
        "tokens": receipt.tokens,
        "durations": {name: round(took, 1) for name, took in durations.items()},
        "text": _text(receipt) if receipt.admission.chat.keeps_text else None,
    }


def retrieved(plan: Plan) -> list[dict[str, Any]]:
    """The memories that were found, the best first."""
    return [_hit(hit) for hit in plan.view.retrieval.hits] if plan.view else []


def _hit(hit: Hit) -> dict[str, Any]:
    return {"id": hit.passage.parent, "tier": hit.tier.value, "score": round(hit.score, DIGITS)}


def _text(receipt: Receipt) -> dict[str, str]:
    plan, turn = receipt.plan, receipt.turn
    return {
        "query": storable(plan.query or (turn.said if turn else "")),
        "injected": plan.injected.text if plan.injected else "",
        "reply": storable(turn.replied if turn else ""),
    }
