"""Records become memories, 500 a transaction; or are only compared with what is there."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import transaction

from engine.exchange.found import Found, Item, LeftOut, Refused
from memory.clock import iso
from memory.errors import Invalid
from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.services import access, audit, keys, memories
from memory.services.draft_rows import merged
from memory.services.drafts import MemoryDraft
from memory.services.import_report import (
    MAX_SAMPLE,
    NEW,
    SAME,
    UPDATED,
    ImportReport,
    reason_text,
)
from memory.services.lifetimes import live
from memory.services.records import draft_of, owner_of

BATCH: Final = 500
SHOWN_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """How a file is imported. ``owner`` None takes the owner each record names, making keys that
    are missing, and the default key for the rest; ``assistant`` takes its turns of chats too."""

    owner: str | None = None
    format: str = "auto"
    assistant: bool = False
    dry_run: bool = False
    name: str = ""


class Importer:
    """One import: give it items, then ``flush``; ``report`` tells how far it is."""

    def __init__(self, principal: Principal, order: ImportOrder, *, kind: str) -> None:
        access.require(principal, "write")
        self._principal = principal
        self._is_dry = order.dry_run
        is_named = bool(access.reference_of(order.owner)) or principal.owner is not None
        self._fixed = access.write_owner(principal, order.owner) if is_named else None
        self._drafts: dict[str | None, list[MemoryDraft]] = {}
        self._waiting = 0
        self._seen: dict[bytes, bytes] = {}
        self._started = time.perf_counter()
        self.report = ImportReport(format=kind, dry_run=order.dry_run)

    def take(self, item: Item) -> bool:
        """Look at an item; whether a batch was stored with it."""
        if isinstance(item, LeftOut):
            self.report.left_out += 1
        elif isinstance(item, Refused):
            self.report.skip(item.place, [reason_text(item.reason)])
        else:
            self._draft(item)
        if self._waiting < BATCH:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Store what waits."""
        if self._is_dry:
            for name, drafts in self._drafts.items():
                self._compare(name, drafts)
        else:
            with transaction.atomic():
                for name, drafts in self._drafts.items():
                    self._store(name, drafts)
        self._drafts, self._waiting = {}, 0
        self.report.seconds = time.perf_counter() - self._started

    def _draft(self, item: Found) -> None:
        record = item.record
        try:
            draft = draft_of(record)
            if not self._principal.may("manage"):
                # Only a manager's records keep their mark as shared.
                draft = replace(draft, is_shared=False)
            named = None if self._fixed or not isinstance(record, dict) else owner_of(record)
        except Invalid as error:
            self.report.skip(item.place, list(error.fields.values()) or [error.message])
            return
        self._drafts.setdefault(named, []).append(draft)
        self._waiting += 1
        if self._is_dry and len(self.report.sample) < MAX_SAMPLE:
            self.report.sample.append(_shown(draft, self._owner_name(named)))

    def _store(self, name: str | None, drafts: Sequence[MemoryDraft]) -> None:
        owner = self._fixed or _owner_named(self._principal, name)
        outcomes = compared(owner, drafts)
        fresh = [d for d, outcome in zip(drafts, outcomes, strict=True) if outcome != SAME]
        stored = memories.store_many(self._principal, owner, fresh) if fresh else []
        for draft, outcome in zip(drafts, outcomes, strict=True):
            if outcome == SAME:
                self.report.count(SAME, draft.type, owner.name)
        for draft, item in zip(_in_order(fresh), stored, strict=True):
            self.report.count(NEW if item.created else UPDATED, draft.type, owner.name)
        if stored:
            ids = [item.memory.pk for item in stored]
            audit.record(self._principal, "memory.import", owner=owner, ids=ids)

    def _compare(self, name: str | None, drafts: Sequence[MemoryDraft]) -> None:
        owner = self._fixed or _existing(name)
        shown = owner.name if owner else str(name)
        for draft, outcome in zip(drafts, compared(owner, drafts), strict=True):
            # Nothing is stored: what came earlier in the file is remembered by its digest.
            place = _digest((shown, draft.key.strip(), draft.archived_at is not None))
            mark = _digest(draft)
            before = self._seen.get(place)
            if before is not None:
                outcome = SAME if before == mark else UPDATED
            self._seen[place] = mark
            self.report.count(outcome, draft.type, shown)

    def _owner_name(self, named: str | None) -> str:
        if self._fixed is not None:
            return self._fixed.name
        return named or access.default_key().name


def compared(owner: ApiKey | None, drafts: Sequence[MemoryDraft]) -> list[str]:
    """What each draft would be if they were stored in this order: new, an update, or the same as
    what is there. ``owner`` None is one that does not exist yet."""
    rows: dict[str, Memory] = {}
    archived: set[tuple[str, str]] = set()
    if owner is not None:
        keys_of = {draft.key.strip() for draft in drafts}
        found = Memory.objects.filter(api_key=owner, key__in=keys_of, trashed_at__isnull=True)
        rows = {row.key: row for row in found.filter(live()).order_by()}
        if any(draft.archived_at for draft in drafts):
            old = found.filter(archived_at__isnull=False).order_by()
            archived = set(old.values_list("key", "content"))
    return [_outcome(rows, archived, draft) for draft in drafts]


def _outcome(rows: dict[str, Memory], archived: set[tuple[str, str]], draft: MemoryDraft) -> str:
    key = draft.key.strip()
    if draft.archived_at is not None:
        is_there = (draft.key, draft.content) in archived
        archived.add((draft.key, draft.content))
        return SAME if is_there else NEW
    row = rows.get(key)
    if row is None:
        rows[key] = _like(draft)
        return NEW
    changes = merged(row, draft)
    changed = {name: value for name, value in changes.items() if getattr(row, name) != value}
    for name, value in changed.items():
        setattr(row, name, value)
    return UPDATED if changed else SAME


def _like(draft: MemoryDraft) -> Memory:
    """A row that is never stored, as a draft would make it."""
    return Memory(
        content=draft.content,
        type=draft.type,
        session_id=draft.session_id,
        metadata=dict(draft.metadata),
        expires_at=draft.expires_at,
        occurred_at=draft.occurred_at,
        is_pinned=draft.is_pinned,
        is_shared=draft.is_shared,
    )


def _in_order(drafts: Sequence[MemoryDraft]) -> list[MemoryDraft]:
    """Drafts in the order in which they are stored: those of the archive first."""
    return sorted(drafts, key=lambda draft: draft.archived_at is None)


def _digest(value: object) -> bytes:
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).digest()[:12]


def _existing(name: str | None) -> ApiKey | None:
    return access.default_key() if name is None else ApiKey.objects.filter(name=name).first()


def _owner_named(principal: Principal, name: str | None) -> ApiKey:
    return _existing(name) or keys.create(principal, str(name))[0]


def _shown(draft: MemoryDraft, owner: str) -> dict[str, Any]:
    """A memory as it would be stored, its text shortened."""
    is_long = len(draft.content) > SHOWN_CHARACTERS
    return {
        "apiKeyName": owner,
        "key": draft.key,
        "content": draft.content[:SHOWN_CHARACTERS] + ("…" if is_long else ""),
        "type": draft.type,
        "sessionId": draft.session_id,
        "metadata": dict(draft.metadata),
        "createdAt": iso(draft.created_at),
        "occurredAt": iso(draft.occurred_at),
        "expiresAt": iso(draft.expires_at),
    }
