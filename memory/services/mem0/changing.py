"""Changing and forgetting as mem0's clients do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _

from memory.errors import Conflict, Invalid, ServiceError
from memory.models import Memory
from memory.principal import Principal
from memory.services import access, batches, clearing, memories
from memory.services.batches import Change, Outcome, Remove, Unreadable
from memory.services.mem0.adding import check_metadata
from memory.services.mem0.entities import MEMBER, OfEntities, member

FEEDBACK: Final = ("POSITIVE", "NEGATIVE", "VERY_NEGATIVE")


def update(principal: Principal, memory_id: str, changes: Mapping[str, Any]) -> Memory:
    """Change ``content``, ``metadata`` (its members are set, the others stay), ``expires_at`` and
    ``occurred_at``. Raises ``Conflict`` for an immutable memory."""
    access.require(principal, "write")
    return memories.update(principal, memory_id, _changes(principal, memory_id, changes))


def _changes(principal: Principal, memory_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    memory = memories.get(principal, memory_id)
    if member(memory).get("immutable") is True:
        raise Conflict(_("This memory is immutable."), code="immutable")
    wanted = dict(changes)
    if "metadata" in wanted:
        check_metadata(wanted["metadata"])
        wanted["metadata"] = {**memory.metadata, **wanted["metadata"]}
    return wanted


def change_many(
    principal: Principal, items: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[Outcome]:
    """Change up to 1,000 memories, each as if it were alone."""
    access.require(principal, "write")
    # Before any is looked up: each is a query.
    batches.check_count(items)
    return batches.carry_out(principal, [_change(principal, *item) for item in items])


def _change(
    principal: Principal, memory_id: str, changes: Mapping[str, Any]
) -> Change | Unreadable:
    try:
        return Change(memory_id, _changes(principal, memory_id, changes))
    except ServiceError as error:
        return Unreadable(error)


def delete_many(principal: Principal, ids: Sequence[str]) -> list[Outcome]:
    """Put up to 1,000 memories in the trash, each as if it were alone."""
    return batches.carry_out(principal, [Remove(memory_id) for memory_id in ids])


def delete_all(principal: Principal, entities: Mapping[str, str]) -> int:
    """Put every memory of these entities in the trash; how many. Raises ``Invalid`` for none."""
    if not entities:
        raise Invalid(_("At least one of user_id, agent_id, app_id and run_id is needed."))
    return clearing.clear(principal, clearing.Wanted(picked=OfEntities(entities)))


def feedback(principal: Principal, memory_id: str, value: str | None, reason: str | None) -> Memory:
    """Keep what a client thinks of a memory with the memory; None takes it back."""
    access.require(principal, "write")
    if value is not None and value not in FEEDBACK:
        message = _("One of: %(choices)s.") % {"choices": ", ".join(FEEDBACK)}
        raise Invalid(message, fields={"feedback": message})
    memory = memories.get(principal, memory_id)
    given = {"feedback": value, "feedback_reason": reason if value else None}
    held = {name: item for name, item in member(memory).items() if name not in given}
    held |= {name: item for name, item in given.items() if item is not None}
    return memories.update(principal, memory_id, {"metadata": {**memory.metadata, MEMBER: held}})
