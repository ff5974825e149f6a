"""Changes reach the primary backend first, when it is not our own tables.

Every function asks the primary outside of any transaction, answers what it calls the memory now,
and raises a ``ServiceError`` when it refuses: then nothing is changed here either. While our own
tables hold the truth they answer None at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.errors import BackendFailed
from engine.records import Changes, Draft
from memory import backend_wiring
from memory.models import ApiKey, Memory
from memory.services import lifetimes
from memory.services.backends import copies
from memory.services.backends.copies import Own
from memory.services.backends.manage import manager, refusal
from memory.services.drafts import MemoryDraft

_FIELDS: Final = {
    "key": "key",
    "content": "content",
    "type": "type",
    "session_id": "session",
    "metadata": "metadata",
    "expires_at": "expires_at",
}


def is_elsewhere() -> bool:
    """Whether another backend holds the truth, and is to be told at once."""
    return backend_wiring.plan().is_elsewhere and not copies.are_deferred()


def create(owner: ApiKey, draft: MemoryDraft) -> Own | None:
    """Store a draft at the primary: a change of what has its key there, else a new record."""
    if not is_elsewhere():
        return None
    rows = Memory.objects.filter(lifetimes.live(), api_key=owner, key=draft.key.strip())
    existing = rows.first()
    if existing is not None:
        merged = {**existing.metadata, **draft.metadata}
        told = _changed(existing, {**_values(draft), "metadata": merged})
        if told is not None:
            return told
        return _created(_draft(owner, draft, merged))
    return _created(_draft(owner, draft, draft.metadata))


def update(memory: Memory, changes: Mapping[str, Any]) -> Own | None:
    """Change a memory at the primary. One that it never had is stored there."""
    if not is_elsewhere():
        return None
    known = {name: value for name, value in changes.items() if name in _FIELDS}
    if known and (told := _changed(memory, known)) is not None:
        return told
    if not known:
        return Own(backend_wiring.plan().primary)
    return _created(_draft_of(memory, known))


def delete(memory: Memory) -> Own | None:
    """Remove a memory from the primary, if it has it."""
    if not is_elsewhere():
        return None
    try:
        manager().delete(str(memory.pk))
    except BackendFailed as error:
        raise refusal(error) from None
    return Own(backend_wiring.plan().primary)


def restore(memory: Memory) -> Own | None:
    """Store a memory at the primary that comes back from the trash or the archive."""
    if not is_elsewhere():
        return None
    return _changed(memory, {name: getattr(memory, name) for name in _FIELDS}) or _created(
        _draft_of(memory, {})
    )


def draft_of(memory: Memory) -> Draft:
    """A memory as backends are given it."""
    return _draft_of(memory, {})


def changes_of(values: Mapping[str, Any]) -> Changes:
    """Changed fields of a memory as backends are told them."""
    changes = Changes()
    for name, value in values.items():
        if name in _FIELDS:
            changes[_FIELDS[name]] = value  # type: ignore[literal-required]
    return changes


def all_of(memory: Memory) -> Changes:
    """Every field of a memory, to make a copy what it is."""
    return changes_of({name: getattr(memory, name) for name in _FIELDS})


def _changed(memory: Memory, values: Mapping[str, Any]) -> Own | None:
    """Change it at the primary; None when the primary does not have it."""
    made, primary = manager(), backend_wiring.plan().primary
    try:
        if made.update(str(memory.pk), changes_of(values)):
            return Own(primary)
    except BackendFailed as error:
        raise refusal(error) from None
    return None


def _created(draft: Draft) -> Own:
    try:
        return Own(backend_wiring.plan().primary, manager().create(draft).id)
    except BackendFailed as error:
        raise refusal(error) from None


def _values(draft: MemoryDraft) -> dict[str, Any]:
    return {
        "content": draft.content,
        "type": draft.type,
        "session_id": draft.session_id,
        "expires_at": draft.expires_at,
    }


def _draft(owner: ApiKey, draft: MemoryDraft, metadata: Mapping[str, Any]) -> Draft:
    return Draft(
        draft.key.strip(),
        draft.content,
        draft.type,
        str(owner.uid),
        draft.session_id,
        dict(metadata),
        draft.expires_at,
    )


def _draft_of(memory: Memory, changes: Mapping[str, Any]) -> Draft:
    values = {name: changes.get(name, getattr(memory, name)) for name in _FIELDS}
    return Draft(
        values["key"],
        values["content"],
        values["type"],
        str(memory.api_key.uid),
        values["session_id"],
        dict(values["metadata"]),
        values["expires_at"],
    )
