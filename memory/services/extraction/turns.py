"""Learning after a chat, in a job: the chat itself never waits for it.

What was said travels to the worker in the job's row, sealed, and is wiped there as soon as it has
been read.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.extract.facts import MAX_TEXT, Speaker
from memory import jobs, secretbox
from memory.errors import ServiceError
from memory.jobs import MAX_ATTEMPTS, JobContext, Order
from memory.models import ApiKey, Job, Trace
from memory.principal import SYSTEM
from memory.services import settings as studio_settings
from memory.services.extraction import asking, learning, settings
from memory.services.extraction.learning import Learnt, Turn

logger = logging.getLogger("memory.extraction")

KIND: Final = "extract"
MOST_INJECTED: Final = 100


def is_learning() -> bool:
    """Whether chats are learnt from now: memory is on, and extraction is."""
    return studio_settings.get().enabled and settings.get().is_on


def learn_soon(owner: ApiKey | None, turns: Sequence[Turn]) -> Job | None:
    """Have turns of a chat learnt from by a worker; None where there is nothing to do.

    Without an owner nothing is learnt. It never raises for what was said.
    """
    said = [turn for turn in turns if turn.text.strip()]
    if owner is None or not said or not is_learning():
        return None
    sealed = secretbox.seal(json.dumps([_packed(turn) for turn in said]))
    order = Order(KIND, {"turns": sealed}, owner_id=owner.pk, requested_by=jobs.UNASKED)
    return jobs.enqueue(order)


def run(context: JobContext) -> Mapping[str, Any]:
    """Carry out the job: learn from its turns, and wipe them."""
    try:
        result = _run(context)
    except Exception:
        logger.warning("memory.extraction.background.failed job=%s", context.job.pk)
        if context.job.attempts >= MAX_ATTEMPTS:
            _wipe(context)
        raise
    _wipe(context)
    return result


def _run(context: JobContext) -> Mapping[str, Any]:
    owner = context.job.owner
    sealed = context.params.get("turns") or ""
    if owner is None or not sealed or not is_learning():
        return {"stored": 0, "waiting": 0}
    stored = waiting = 0
    for turn in map(_unpacked, json.loads(secretbox.open_sealed(sealed))):
        for learnt in _learn(owner, turn):
            stored += len(learnt.stored)
            waiting += len(learnt.waiting)
            _note(turn.trace_id, learnt)
    return {"stored": stored, "waiting": waiting}


def _learn(owner: ApiKey, turn: Turn) -> list[Learnt]:
    by_rules = learning.learn(SYSTEM, turn, owner=str(owner.uid))
    chosen = settings.get()
    if not chosen.model or turn.speaker is not Speaker.USER:
        return [by_rules]
    try:
        screened = asking.ask(owner, turn, chosen)
    except ServiceError as error:
        logger.warning("memory.extraction.model.failed code=%s", error.code)
        return [by_rules]
    return [by_rules, learning.store(SYSTEM, owner, turn, screened, source=asking.SOURCE)]


def _note(trace_id: uuid.UUID | None, learnt: Learnt) -> None:
    """Tell the receipt of the chat what was learnt from it."""
    ids = [str(memory.pk) for memory in learnt.memories]
    if trace_id is None or not ids:
        return
    trace = Trace.objects.filter(pk=trace_id).only("learnt").first()
    if trace is not None:
        trace.learnt = [*dict.fromkeys([*trace.learnt, *ids])]
        trace.save(update_fields=["learnt"])


def _wipe(context: JobContext) -> None:
    Job.objects.filter(pk=context.job.pk).update(params={})


def _packed(turn: Turn) -> dict[str, Any]:
    return {
        "text": turn.text[-MAX_TEXT:],
        "speaker": turn.speaker.value,
        "session": turn.session,
        "injected": [text[:MAX_TEXT] for text in turn.injected[:MOST_INJECTED]],
        "trace": str(turn.trace_id) if turn.trace_id else "",
    }


def _unpacked(packed: Mapping[str, Any]) -> Turn:
    return Turn(
        text=packed["text"],
        speaker=Speaker(packed["speaker"]),
        session=packed["session"],
        injected=packed["injected"],
        trace_id=uuid.UUID(packed["trace"]) if packed["trace"] else None,
    )
