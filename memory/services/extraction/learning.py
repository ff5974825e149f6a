"""One turn: what it says about its user, and storing that.

Facts that are sure become memories by (owner, key), as the first seed's. What is stored is the
clause that says it, in the speaker's own words; what it names, its polarity and its origin are
metadata.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from django.db import transaction

from engine.extract import screening
from engine.extract.extractor import is_cut, longer_key
from engine.extract.facts import Fact, Guarded, Speaker
from engine.extract.screening import Held, Screened
from memory.clock import iso, now
from memory.models import ApiKey, InboxItem, Memory
from memory.principal import Principal
from memory.services import access, audit, memories
from memory.services.drafts import MAX_SESSION, MemoryDraft
from memory.services.extraction import inbox
from memory.services.lifetimes import live

logger = logging.getLogger("memory.extraction")

RULES: Final = "rules"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said in a chat.

    ``injected`` are the texts that memory put into the prompt: nothing is learnt from them.
    ``trace_id`` is the receipt of the chat. A session is optional.
    """

    text: str
    speaker: Speaker = Speaker.USER
    session: str = ""
    injected: Sequence[str] = ()
    trace_id: uuid.UUID | None = None


class Outcome(StrEnum):
    """What becomes of a fact."""

    STORED = "stored"
    """A memory, new or in place of an earlier one."""
    KNOWN = "known"
    """The memory of its key says so already."""
    WAITING = "waiting"
    REJECTED = "rejected"
    """It would wait, but somebody has rejected it before, or it is a memory already."""


@dataclass(frozen=True, slots=True)
class Result:
    """One fact and what became of it. ``reason`` says why it waits."""

    fact: Fact
    outcome: Outcome
    reason: str = ""
    memory: Memory | None = None
    item: InboxItem | None = None


@dataclass(frozen=True, slots=True)
class Learnt:
    """What became of a turn, and clauses that were held back, each with the reason."""

    results: list[Result] = field(default_factory=list)
    dropped: Sequence[Guarded] = ()

    @property
    def stored(self) -> list[Memory]:
        """Memories that are new or were changed."""
        return [one.memory for one in self.results if one.memory and one.outcome == "stored"]

    @property
    def memories(self) -> list[Memory]:
        """The memories of all facts, also of those that were known."""
        return [one.memory for one in self.results if one.memory]

    @property
    def waiting(self) -> list[InboxItem]:
        """What is in the inbox now."""
        return [one.item for one in self.results if one.item]


def preview(principal: Principal, turn: Turn, *, owner: str | None = None) -> Learnt:
    """What would become of a turn, by rules; nothing is stored and no model is asked."""
    access.require(principal, "read")
    key = access.write_owner(principal, owner)
    screened = _read(turn)
    results = [
        Result(fact, Outcome.KNOWN if _same(key, fact) else Outcome.STORED)
        for fact in screened.stored
    ]
    for held in screened.held:
        is_new = inbox.is_asked(key, heard(turn, held, RULES))
        outcome = Outcome.WAITING if is_new else Outcome.REJECTED
        results.append(Result(held.fact, outcome, held.reason))
    return Learnt(results, screened.dropped)


def learn(principal: Principal, turn: Turn, *, owner: str | None = None) -> Learnt:
    """Learn from a turn on behalf of an owner, and store it. The clear function for others.

    A caller needs the scope ``write``; a manager may name any owner.
    """
    access.require(principal, "write")
    key = access.write_owner(principal, owner)
    return store(principal, key, turn, _read(turn))


def store(
    principal: Principal, owner: ApiKey, turn: Turn, screened: Screened, *, source: str = RULES
) -> Learnt:
    """Store screened facts of a turn. The caller has checked that the principal may."""
    begun = time.perf_counter()
    # Not one transaction: a backend elsewhere is told of each memory outside of any.
    with audit.gathered():
        results = [_keep(principal, owner, turn, fact, source) for fact in screened.stored]
    results += [_ask(owner, turn, held, source) for held in screened.held]
    learnt = Learnt(results, screened.dropped)
    if learnt.stored or learnt.waiting:
        audit.record(
            principal,
            "memory.extract",
            owner=owner,
            ids=[memory.pk for memory in learnt.stored],
            duration_ms=(time.perf_counter() - begun) * 1000,
            detail={"waiting": len(learnt.waiting), "source": source},
        )
    logger.info(
        "memory.extraction.stored owner=%s stored=%d waiting=%d dropped=%d",
        owner.pk,
        len(learnt.stored),
        len(learnt.waiting),
        len(learnt.dropped),
    )
    return learnt


def _ask(owner: ApiKey, turn: Turn, held: Held, source: str) -> Result:
    with transaction.atomic():
        item = inbox.hear(owner, heard(turn, held, source))
    outcome = Outcome.REJECTED if item is None else Outcome.WAITING
    return Result(held.fact, outcome, held.reason, item=item)


def heard(turn: Turn, held: Held, source: str) -> inbox.Heard:
    """A fact that was held, as the inbox takes it."""
    fact = held.fact
    return inbox.Heard(
        category=fact.category.value,
        type=fact.type.value,
        key=fact.key,
        content=fact.statement,
        polarity=fact.polarity.value,
        speaker=fact.speaker.value,
        confidence=fact.confidence,
        reason=held.reason,
        source=source,
        metadata=metadata_of(fact, source),
        session=_session(turn),
        trace_id=turn.trace_id,
    )


def metadata_of(fact: Fact, source: str) -> dict[str, Any]:
    """What a memory keeps of the fact it came from; the first three names are the seed's."""
    kept: dict[str, Any] = {
        "category": fact.category.value,
        "extractedAt": iso(now()),
        "source": f"{fact.speaker.value}_turn",
        "object": fact.content,
        "polarity": fact.polarity.value,
        "speaker": fact.speaker.value,
        "confidence": round(fact.confidence, 3),
        "rule": fact.rule if source == RULES else source,
    }
    return {**kept, "slug": fact.full_slug} if is_cut(fact) else kept


def _read(turn: Turn) -> Screened:
    return screening.read_turn(turn.text, speaker=turn.speaker, injected=turn.injected)


def _keep(principal: Principal, owner: ApiKey, turn: Turn, fact: Fact, source: str) -> Result:
    earlier = _same(owner, fact)
    if earlier is not None:
        return Result(fact, Outcome.KNOWN, memory=earlier)
    key = key_for(owner, fact)
    draft = MemoryDraft(
        content=fact.statement,
        key=key,
        type=fact.type.value,
        session_id=_session(turn),
        metadata=metadata_of(fact, source),
    )
    memory, _created = memories.create(principal, draft, owner=str(owner.uid))
    inbox.settle(owner, key, memory)
    return Result(fact, Outcome.STORED, memory=memory)


def _same(owner: ApiKey, fact: Fact) -> Memory | None:
    """The memory that says the same already."""
    rows = Memory.objects.filter(live(), api_key=owner, key=key_for(owner, fact))
    return rows.filter(content=fact.statement).first()


def key_for(owner: ApiKey, fact: Fact) -> str:
    """The key of a fact; a longer one where the cut made it that of another memory."""
    if not is_cut(fact):
        return fact.key
    rows = Memory.objects.filter(live(), api_key=owner, key=fact.key)
    slugs = [row.metadata.get("slug") for row in rows[:1]]
    return longer_key(fact) if slugs and slugs[0] not in (None, fact.full_slug) else fact.key


def _session(turn: Turn) -> str:
    return turn.session[:MAX_SESSION]
