"""Records of a backend as memories here: the indexed mirror of whoever holds the truth."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from engine.errors import BackendFailed
from engine.records import Filter, Page, Record
from memory import backend_wiring
from memory.errors import NotFound, ServiceError
from memory.models import ApiKey, BackendCopy, Memory
from memory.principal import SYSTEM
from memory.services import access, audit, lifetimes, memories
from memory.services.backends import copies
from memory.services.backends.copies import Own
from memory.services.backends.manage import manager
from memory.services.drafts import MAX_KEY, MAX_SESSION, TYPES, MemoryDraft, check, json_problem

logger = logging.getLogger("memory.backends")

ACTION: Final = "mirror"


@dataclass(frozen=True, slots=True)
class Shown:
    """A record and the memory that mirrors it."""

    record: Record
    memory: Memory


def refreshed(memory: Memory) -> Memory:
    """A memory as the primary has it now; the mirror itself while the backends fail.

    Raises ``NotFound`` when the primary had it and has it no more: then it is in the trash here.
    """
    plan = backend_wiring.plan()
    try:
        found = manager().get(str(memory.pk))
    except BackendFailed as error:
        _warn(plan.primary, error)
        return memory
    if found is not None and found[0] == plan.primary:
        shown = apply(found[0], [found[1]])
        return shown[0].memory if shown else memory
    if found is not None:
        # Shown, not stored: a fallback may be behind the truth.
        for name, value in _values(found[1]).items():
            setattr(memory, name, value)
        return memory
    copy = BackendCopy.objects.filter(backend=plan.primary, memory_id=memory.pk).first()
    if copy is None or copy.pending:
        # It waits to be copied there.
        return memory
    vanish(plan.primary, [memory.pk])
    raise NotFound(_("No such memory."))


def listed(wanted: Filter) -> tuple[Page, list[Memory]] | None:
    """A page of the primary with its memories in order; None when the mirror has to answer."""
    plan = backend_wiring.plan()
    try:
        page = manager().list_records(wanted)
    except BackendFailed as error:
        _warn(plan.primary, error)
        return None
    return page, [shown.memory for shown in apply(plan.primary, page.data)]


def apply(backend: str, records: Iterable[Record], *, asked: bool = False) -> list[Shown]:
    """Bring the mirror up to date with records of a backend; the live memories, in their order.

    Only the primary changes what is here, unless someone ``asked`` for it: others may be behind.
    Records that cannot be stored here are left out, as are those that were deleted or archived.
    """
    holds_truth = asked or backend == backend_wiring.plan().primary
    if backend == backend_wiring.LOCAL:
        return _local(records)
    shown: list[Shown] = []
    written: list[uuid.UUID] = []
    for record in records:
        try:
            with transaction.atomic(), copies.told(Own(backend)):
                if _is_going(backend, record):
                    continue
                memory = _found(backend, record) or _added(backend, record, written)
                if memory is None or memory.trashed_at or memory.archived_at:
                    continue
                if holds_truth:
                    _correct(backend, record, memory, written)
        except (IntegrityError, ServiceError) as error:
            logger.info("a record of %s is not mirrored: %s", backend, type(error).__name__)
            continue
        shown.append(Shown(record, memory))
    if written:
        audit.record(SYSTEM, "memory.mirror", ids=written)
    return shown


def vanish(backend: str, ids: Iterable[uuid.UUID]) -> int:
    """Put memories into the trash that a backend has no more; how many."""
    gone = 0
    for memory_id in ids:
        with transaction.atomic(), copies.told(Own(backend)):
            row = Memory.objects.filter(pk=memory_id, trashed_at__isnull=True).first()
            if row is not None:
                memories.discard(SYSTEM, row)
                gone += 1
            BackendCopy.objects.filter(backend=backend, memory_id=memory_id).delete()
    return gone


def _local(records: Iterable[Record]) -> list[Shown]:
    found = list(records)
    rows = Memory.objects.filter(lifetimes.live()).select_related("api_key")
    by_id = rows.in_bulk([uuid.UUID(record.id) for record in found])
    return [
        Shown(record, by_id[uuid.UUID(record.id)])
        for record in found
        if uuid.UUID(record.id) in by_id
    ]


def _found(backend: str, record: Record) -> Memory | None:
    """The memory that mirrors a record, locked; None when none does."""
    copy = BackendCopy.objects.filter(backend=backend, own_id=record.id).first()
    if copy is None:
        return None
    rows = Memory.objects.select_related("api_key").select_for_update(of=("self",))
    memory = rows.filter(pk=copy.memory_id).first()
    if memory is None:
        copy.delete()
    return memory


def _is_going(backend: str, record: Record) -> bool:
    """Whether the backend is still to be told to remove a record."""
    known = BackendCopy.objects.filter(backend=backend, own_id=record.id)
    return known.filter(pending=BackendCopy.Pending.DELETE).exists()


def _correct(backend: str, record: Record, memory: Memory, written: list[uuid.UUID]) -> None:
    """Make a memory what its record says, unless the backend is still to hear of a change."""
    known = BackendCopy.objects.filter(backend=backend, own_id=record.id)
    changes = _changes(memory, record)
    if changes and not known.exclude(pending="").exists():
        memories.accept(SYSTEM, memory, changes, ACTION)
        written.append(memory.pk)


def _changes(memory: Memory, record: Record) -> dict[str, Any]:
    said = _values(record)
    # Its key here may have a mark that tells it from another of the same name.
    if memory.key == said["key"] or memory.key == _marked(said["key"], record):
        del said["key"]
    return {name: value for name, value in said.items() if getattr(memory, name) != value}


def _values(record: Record) -> dict[str, Any]:
    return {
        "key": record.key.strip()[:MAX_KEY] or record.id[:MAX_KEY],
        "content": record.content,
        "type": record.type if record.type in TYPES else "factual",
        "session_id": record.session[:MAX_SESSION],
        "metadata": {} if json_problem(record.metadata) else dict(record.metadata),
        "expires_at": record.expires_at,
    }


def _added(backend: str, record: Record, written: list[uuid.UUID]) -> Memory | None:
    values, owner = _values(record), _owner(record)
    if owner is None:
        return None
    taken = Memory.objects.filter(lifetimes.live(), api_key=owner, key=values["key"]).first()
    if taken is not None and _is_linked(backend, taken):
        values["key"] = _marked(values["key"], record)
    draft = MemoryDraft(**values, created_at=record.created_at)
    check(draft)
    memory = memories.store_many(SYSTEM, owner, [draft])[0].memory
    copies.link(Own(backend, record.id), memory.pk)
    written.append(memory.pk)
    return memory


def _owner(record: Record) -> ApiKey | None:
    """Whom a record names, by id or name. One that names a stranger is nobody's here."""
    if not record.owner:
        return access.default_key()
    try:
        return access.find(record.owner)
    except NotFound:
        return None


def _is_linked(backend: str, memory: Memory) -> bool:
    return BackendCopy.objects.filter(backend=backend, memory_id=memory.pk).exists()


def _marked(key: str, record: Record) -> str:
    mark = f" ({record.id[:60]})"
    return key[: MAX_KEY - len(mark)] + mark


def _warn(backend: str, error: BackendFailed) -> None:
    logger.warning("memory.backend.failed backend=%s code=%s", backend, error.code)
