"""Create (upsert by key), change, trash, restore and revert memories; every change keeps the
earlier text."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from engine.database import lock
from engine.text.tokens import estimate_tokens
from memory import row_writer, wiring
from memory.clock import now
from memory.errors import Conflict, NotFound
from memory.models import ApiKey, Memory, MemoryRevision
from memory.principal import Principal
from memory.services import access, audit, passages, row_cache
from memory.services.backends import copies, truth
from memory.services.backends.copies import Own
from memory.services.draft_rows import merged, new_row, without_repeats
from memory.services.drafts import MemoryDraft, check, check_changes
from memory.services.embedding import embed_soon
from memory.services.lifetimes import live
from memory.services.webhooks import events

CHANGEABLE: Final = frozenset(
    {
        "key",
        "type",
        "content",
        "metadata",
        "session_id",
        "expires_at",
        "occurred_at",
        "is_pinned",
        "is_shared",
    }
)
_WITH_EVERY_CHANGE: Final = ("revision", "tokens", "updated_at", "retained_at")
MOST_RACES: Final = 5
_UPSERTED: Final = CHANGEABLE - {"key"} | set(_WITH_EVERY_CHANGE)
_REVISED: Final = ("key", "type", "content", "metadata", "session_id", "expires_at")


@dataclass(frozen=True, slots=True)
class Stored:
    """One stored draft: the row, and whether it is new."""

    memory: Memory
    created: bool


def visible(principal: Principal) -> QuerySet[Memory]:
    """Rows the caller may see, whatever their state."""
    rows = Memory.objects.select_related("api_key")
    if access.may_name_owners(principal):
        return rows
    return rows.filter(api_key=principal.owner)


def get(principal: Principal, memory_id: str | uuid.UUID, *, trashed: bool = False) -> Memory:
    """One memory. Raises ``NotFound`` also for another owner's and for trashed rows.

    A primary backend elsewhere is asked for what it is now; not for history (``trashed``).
    """
    access.require(principal, "read")
    memory = row_cache.CACHE.read(_uuid(memory_id), owner=principal.owner)
    if memory is None or not _is_visible(principal, memory):
        raise NotFound(_("No such memory."))
    if trashed:
        return memory
    if memory.trashed_at is not None:
        raise NotFound(_("No such memory."))
    if truth.is_elsewhere() and memory.archived_at is None:
        # The mirror is written by the functions of this module.
        from memory.services.backends import mirror

        return mirror.refreshed(memory)
    return memory


def create(
    principal: Principal, draft: MemoryDraft, *, owner: str | None = None
) -> tuple[Memory, bool]:
    """Store one memory; a live row with the same key is updated and its metadata merged.

    Answers the row and whether it is new. Only a manager may share one with every owner.
    """
    access.require(principal, "write")
    key = access.write_owner(principal, owner)
    check(draft)
    if draft.is_shared:
        access.require(principal, "manage")
    own = truth.create(key, draft)
    with transaction.atomic(), copies.told(own):
        stored = store_many(principal, key, [draft])[0]
        copies.link(own, stored.memory.pk)
        audit.record(principal, "memory.create", owner=key, ids=[stored.memory.pk])
    return stored.memory, stored.created


def store_many(
    principal: Principal, owner: ApiKey, drafts: Sequence[MemoryDraft], *, embed: bool = True
) -> list[Stored]:
    """Upsert checked drafts of one owner; a key that comes twice is merged in order.

    Call inside a transaction. ``embed`` False leaves the vectors to a later job.
    """
    stored = _store_archived(owner, [draft for draft in drafts if draft.archived_at])
    for batch in without_repeats([draft for draft in drafts if not draft.archived_at]):
        existing, fresh = _placed(owner, batch)
        passages.add(fresh)
        _upsert(principal, existing, batch)
        passages.sync(list(existing.values()))
        events.told(events.CREATED, fresh)
        events.told(events.UPDATED, list(existing.values()))
        by_key = {row.key: Stored(row, created=True) for row in fresh}
        by_key.update({key: Stored(row, created=False) for key, row in existing.items()})
        stored.extend(by_key[draft.key] for draft in batch)
    if embed:
        embed_soon()
        copies.added()
    return stored


def _placed(owner: ApiKey, batch: Sequence[MemoryDraft]) -> tuple[dict[str, Memory], list[Memory]]:
    """The live rows with the keys of a batch, locked, and new rows for the other keys, stored.

    Another writer may store one of the keys meanwhile: then its row is there to merge into.
    """
    if len(batch) > 1:
        lock_owner(owner)
    for _attempt in range(MOST_RACES):
        rows = Memory.objects.select_for_update().filter(
            live(), api_key=owner, key__in=[draft.key for draft in batch]
        )
        # In no order: to spare the sorting, SQLite would walk every memory of the owner.
        existing = {row.key: row for row in rows.order_by()}
        fresh = [new_row(owner, draft) for draft in batch if draft.key not in existing]
        try:
            with transaction.atomic():
                row_writer.insert(fresh)
        except IntegrityError:
            continue
        return existing, fresh
    raise Conflict(_("Others are writing the same keys. Try again."), code="busy")


def lock_owner(owner: ApiKey) -> None:
    """Whoever changes several memories of an owner at once does so alone, to the end of the
    transaction: two that lock rows in other orders would wait for each other."""
    lock(wiring.connect(), f"memories-{owner.pk}")


def _store_archived(owner: ApiKey, drafts: Sequence[MemoryDraft]) -> list[Stored]:
    """Drafts of an export that were archived stay so; one that is there already is left alone."""
    rows = Memory.objects.filter(
        api_key=owner,
        archived_at__isnull=False,
        trashed_at__isnull=True,
        key__in=[draft.key for draft in drafts],
    )
    known = {(row.key, row.content): row for row in (rows.order_by() if drafts else ())}
    stored: list[Stored] = []
    for draft in drafts:
        place = (draft.key, draft.content)
        created = place not in known
        known.setdefault(place, new_row(owner, draft))
        stored.append(Stored(known[place], created))
    fresh = [item.memory for item in stored if item.created]
    row_writer.insert(fresh)
    passages.add(fresh)
    events.told(events.CREATED, fresh)
    return stored


def update(
    principal: Principal,
    memory_id: str | uuid.UUID,
    changes: Mapping[str, Any],
    *,
    expected_revision: int | None = None,
) -> Memory:
    """Change fields of a memory, by their model names; metadata is replaced.

    Raises ``Conflict`` when another live row has the key, or when ``expected_revision`` is stale.
    """
    access.require(principal, "write")
    check_changes(changes)
    known = {name: value for name, value in changes.items() if name in CHANGEABLE}
    own: Own | None = None
    if truth.is_elsewhere():
        memory = _changeable(principal, _find(principal, memory_id), known, expected_revision)
        own = truth.update(memory, known)
    with transaction.atomic(), copies.told(own):
        found = _find(principal, memory_id, lock=True)
        memory = _changeable(principal, found, known, expected_revision)
        _save(principal, memory, known, "edit")
        copies.link(own, memory.pk)
        audit.record(principal, "memory.update", owner=memory.api_key, ids=[memory.pk])
    return memory


def _changeable(
    principal: Principal, memory: Memory, changes: Mapping[str, Any], revision: int | None
) -> Memory:
    """The memory itself, when the caller may change it so."""
    if memory.trashed_at is not None:
        raise NotFound(_("No such memory."))
    if revision is not None and revision != memory.revision:
        raise Conflict(_("Someone else changed this memory meanwhile."), code="stale")
    if changes.get("is_shared", memory.is_shared) != memory.is_shared:
        access.require(principal, "manage")
    return memory


def delete(principal: Principal, memory_id: str | uuid.UUID, *, purge: bool = False) -> None:
    """Put a memory in the trash, out of every index at once; with ``purge`` erase it for good."""
    access.require(principal, "write")
    own: Own | None = None
    if truth.is_elsewhere():
        found = _find(principal, memory_id)
        own = truth.delete(found) if found.trashed_at is None else None
    with transaction.atomic(), copies.told(own):
        memory = _find(principal, memory_id, lock=True)
        if memory.trashed_at is not None and not purge:
            raise NotFound(_("No such memory."))
        passages.remove([memory])
        copies.removed([memory.pk])
        action = "memory.purge" if purge else "memory.delete"
        audit.record(principal, action, owner=memory.api_key, ids=[memory.pk])
        if memory.trashed_at is None:
            events.removed(memory.api_key_id, [memory.pk])
        if purge:
            memory.delete()
        else:
            memory.trashed_at = now()
            memory.save(update_fields=["trashed_at"])


def discard(principal: Principal, memory: Memory) -> None:
    """Put a memory in the trash because another backend has it no more."""
    passages.remove([memory])
    copies.removed([memory.pk])
    memory.trashed_at = now()
    memory.save(update_fields=["trashed_at"])
    events.removed(memory.api_key_id, [memory.pk])
    audit.record(principal, "memory.delete", owner=memory.api_key, ids=[memory.pk])


def restore(principal: Principal, memory_id: str | uuid.UUID) -> Memory:
    """Bring a memory back from the trash, or one that is not there from the archive.

    Raises ``Conflict`` when its key was taken meanwhile.
    """
    access.require(principal, "write")
    own = truth.restore(_find(principal, memory_id)) if truth.is_elsewhere() else None
    with transaction.atomic(), copies.told(own):
        memory = _find(principal, memory_id, lock=True)
        copies.link(own, memory.pk)
        copies.changed([memory.pk])
        if memory.trashed_at is None:
            memory.archived_at = memory.archived_by = None
        memory.trashed_at = None
        _save_row(memory, ["trashed_at", "archived_at", "archived_by"])
        passages.sync([memory])
        events.told(events.RESTORED, [memory])
        audit.record(principal, "memory.restore", owner=memory.api_key, ids=[memory.pk])
    embed_soon()
    return memory


def history(principal: Principal, memory_id: str | uuid.UUID) -> list[MemoryRevision]:
    """What a memory was before each change, newest first."""
    return list(get(principal, memory_id, trashed=True).revisions.all())


def revert(principal: Principal, memory_id: str | uuid.UUID, revision: int) -> Memory:
    """Make a memory what it was at an earlier revision; itself a change that keeps the text."""
    access.require(principal, "write")
    own: Own | None = None
    if truth.is_elsewhere():
        memory = _find(principal, memory_id)
        own = truth.update(memory, _earlier(memory, revision))
    with transaction.atomic(), copies.told(own):
        memory = _find(principal, memory_id, lock=True)
        _save(principal, memory, _earlier(memory, revision), "revert")
        copies.link(own, memory.pk)
        audit.record(principal, "memory.revert", owner=memory.api_key, ids=[memory.pk])
    return memory


def _earlier(memory: Memory, revision: int) -> dict[str, Any]:
    """The fields of a memory at a revision."""
    earlier = memory.revisions.filter(revision=revision).first()
    if earlier is None or memory.trashed_at is not None:
        raise NotFound(_("No such revision."))
    return {name: getattr(earlier, name) for name in _REVISED}


def accept(principal: Principal, memory: Memory, changes: Mapping[str, Any], action: str) -> None:
    """Make a locked row what the backend that holds the truth says it is."""
    _save(principal, memory, changes, action)


def rewrite(principal: Principal, memory: Memory, content: str, action: str) -> None:
    """Replace the text of a locked row on behalf of another service."""
    _save(principal, memory, {"content": content}, action)


def _is_visible(principal: Principal, memory: Memory) -> bool:
    """``visible`` for one row."""
    return access.may_name_owners(principal) or memory.api_key_id == principal.owner


def _uuid(memory_id: str | uuid.UUID) -> uuid.UUID:
    try:
        return memory_id if isinstance(memory_id, uuid.UUID) else uuid.UUID(memory_id)
    except ValueError:
        raise NotFound(_("No such memory.")) from None


def _find(principal: Principal, memory_id: str | uuid.UUID, *, lock: bool = False) -> Memory:
    rows = visible(principal)
    if lock:
        rows = rows.select_for_update(of=("self",))
    memory = rows.filter(pk=_uuid(memory_id)).first()
    if memory is None:
        raise NotFound(_("No such memory."))
    return memory


def _upsert(
    principal: Principal, existing: Mapping[str, Memory], batch: Sequence[MemoryDraft]
) -> None:
    """Merge drafts into the live rows with their keys, in a few statements for all."""
    found = [(existing[draft.key], draft) for draft in batch if draft.key in existing]
    kept = [_apply(principal, row, merged(row, draft), "upsert") for row, draft in found]
    row_writer.insert([item for item in kept if item])
    row_writer.update(list(existing.values()), _UPSERTED)
    copies.changed([row.pk for row in existing.values()])


def _save(principal: Principal, memory: Memory, changes: Mapping[str, Any], action: str) -> None:
    kept = _apply(principal, memory, changes, action)
    if kept is not None:
        kept.save(force_insert=True)
    _save_row(memory, [*changes, *_WITH_EVERY_CHANGE])
    passages.sync([memory])
    copies.changed([memory.pk])
    events.told(events.UPDATED, [memory])
    embed_soon()


def _apply(
    principal: Principal, memory: Memory, changes: Mapping[str, Any], action: str
) -> MemoryRevision | None:
    """Set fields of a row that is not saved yet; the revision to keep when its text changes."""
    changed = {name for name, value in changes.items() if getattr(memory, name) != value}
    kept = _revision(principal, memory, action) if changed & set(_REVISED) else None
    memory.revision += kept is not None
    for name in changed:
        setattr(memory, name, changes[name])
    memory.tokens = estimate_tokens(memory.content)
    memory.updated_at = memory.retained_at = now()
    return kept


def _revision(principal: Principal, memory: Memory, action: str) -> MemoryRevision:
    return MemoryRevision(
        memory=memory,
        revision=memory.revision,
        replaced_at=now(),
        replaced_by=principal.label[:160],
        action=action,
        **{name: getattr(memory, name) for name in _REVISED},
    )


def _save_row(memory: Memory, fields: Iterable[str]) -> None:
    try:
        with transaction.atomic():
            memory.save(update_fields=list(fields))
    except IntegrityError:
        message = _("Another memory of this owner has this key.")
        raise Conflict(message, code="key_taken", fields={"key": message}) from None
