"""Adding what mem0's clients offer: messages of a conversation, for some entities."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memory.errors import Invalid
from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.services import access, audit, memories
from memory.services.backends import truth
from memory.services.drafts import MemoryDraft, check
from memory.services.inference import Inferred, Turn, infer
from memory.services.mem0.entities import MEMBER, NAMES, owner_of
from memory.services.mem0.events import event_id
from memory.services.memories import Stored


@dataclass(frozen=True, slots=True)
class Offer:
    """Messages to remember. ``infer`` False stores every one of them as it is; the entities are
    checked, and ``metadata`` is the client's own."""

    turns: Sequence[Turn]
    entities: Mapping[str, str]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    infer: bool = True
    is_immutable: bool = False
    expires_at: datetime | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """What became of an offer: memories in the order of their messages, and what to tell."""

    stored: Sequence[Stored]
    event_id: str | None
    note: str = ""


def add(principal: Principal, offer: Offer) -> Added:
    """Store an offer, all of it or nothing.

    With ``infer``, a text that was remembered for the same entities already is not stored again.
    Raises ``Invalid`` when there is no text, or when something cannot be stored.
    """
    access.require(principal, "write")
    owner = owner_of(principal)
    check_metadata(offer.metadata)
    said = [turn for turn in offer.turns if turn.content.strip() and turn.role != "system"]
    if not said:
        raise Invalid(
            _("There is no text in it."), fields={"messages": _("There is no text in it.")}
        )
    kept = infer(said) if offer.infer else Inferred(tuple(said))
    drafts = [_draft(offer, turn) for turn in kept.turns]
    for draft in drafts:
        check(draft)
    if not drafts:
        return Added((), None, kept.note)
    stored, event = _store(principal, owner, drafts)
    return Added(stored, event, kept.note)


def _store(
    principal: Principal, owner: ApiKey, drafts: Sequence[MemoryDraft]
) -> tuple[list[Stored], str | None]:
    """Store drafts, with one audit row; its event."""
    if truth.is_elsewhere():
        with audit.gathered():
            stored = [
                Stored(*memories.create(principal, draft, owner=str(owner.uid))) for draft in drafts
            ]
    else:
        with transaction.atomic():
            stored = memories.store_many(principal, owner, drafts)
            return stored, _recorded(principal, owner, [item.memory for item in stored])
    return stored, _recorded(principal, owner, [item.memory for item in stored])


def _recorded(principal: Principal, owner: ApiKey, rows: Sequence[Memory]) -> str | None:
    row = audit.record(principal, "memory.create", owner=owner, ids=[row.pk for row in rows])
    return event_id(row) if row is not None else None


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Raise ``Invalid`` for metadata that uses our own member."""
    if MEMBER in metadata:
        message = _("The name “%(name)s” is taken.") % {"name": MEMBER}
        raise Invalid(message, fields={"metadata": message})


def _draft(offer: Offer, turn: Turn) -> MemoryDraft:
    held: dict[str, Any] = {
        name: offer.entities[name] for name in NAMES[:3] if name in offer.entities
    }
    held["role"] = turn.role
    if offer.is_immutable:
        held["immutable"] = True
    metadata = {**offer.metadata, MEMBER: held}
    if turn.name:
        metadata.setdefault("speaker", turn.name)
    return MemoryDraft(
        content=turn.content,
        key=_digest(offer, turn) if offer.infer else uuid.uuid4().hex,
        session_id=offer.entities.get("run_id", ""),
        metadata=metadata,
        expires_at=offer.expires_at,
        occurred_at=offer.occurred_at,
        created_at=offer.occurred_at,
    )


def _digest(offer: Offer, turn: Turn) -> str:
    """A key that a text has once for its entities; it holds no word that would be indexed."""
    parts = [turn.content.strip(), *(offer.entities.get(name) for name in NAMES)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
