"""Users, agents, apps and runs: where a memory keeps them, and which there are.

The owner of a memory is the key, always. A run is the session of a memory; user, agent and app,
and whatever else only mem0's clients know, stand in the member ``mem0`` of its metadata, which
their clients do not see. Members of members are not indexed: a name there makes no memory match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, F, Max, Min, Q, QuerySet
from django.db.models.fields.json import KT
from django.utils.translation import gettext as _

from memory.errors import Invalid, NotFound
from memory.json_tests import JsonTest
from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.services import access, clearing, lifetimes
from memory.services.drafts import MAX_SESSION, is_storable

MEMBER: Final = "mem0"
NAMES: Final = ("user_id", "agent_id", "app_id", "run_id")
KINDS: Final = ("user", "agent", "app", "run")
ANY: Final = "*"
MAX_NAME: Final = MAX_SESSION
MOST_NUMBER: Final = 10**MAX_NAME
"""Above it a number has more digits than a name may have; Python writes no endless ones."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A user, agent, app or run, with its live memories."""

    kind: str
    name: str
    count: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class OfEntities:
    """Memories of every one of these entities; ``*`` is any that is named."""

    wanted: Mapping[str, str] = field(default_factory=dict)

    def condition(self, of: str) -> Q:
        """The condition, which is empty for no entity."""
        made = Q()
        for name, value in self.wanted.items():
            made &= has_any(of, name) if value == ANY else is_of(of, name, value)
        return made


def is_of(of: str, name: str, value: str) -> Q:
    """Whether a memory is of one entity."""
    if name == "run_id":
        return Q(**{f"{of}session_id": value})
    return Q(JsonTest(f"{of}metadata", [MEMBER, name], "eq", value))


def has_any(of: str, name: str) -> Q:
    """Whether a memory is of an entity of a kind at all."""
    if name == "run_id":
        return ~Q(**{f"{of}session_id": ""})
    return ~Q(JsonTest(f"{of}metadata", [MEMBER, name], "eq", None))


def owner_of(principal: Principal) -> ApiKey:
    """Whose memories a caller means: these clients can name no owner."""
    return access.read_owner(principal, None) or access.default_key()


def own(principal: Principal) -> QuerySet[Memory]:
    """The live memories of the caller."""
    return Memory.objects.filter(lifetimes.live(), api_key=owner_of(principal))


def checked(given: Mapping[str, object]) -> dict[str, str]:
    """The entities among what a client sent. Raises ``Invalid`` for a name that none can have."""
    problems: dict[str, str] = {}
    found: dict[str, str] = {}
    for name in NAMES:
        value = given.get(name)
        if value is None or value == "":
            continue
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST_NUMBER:
            value = str(value)
        if not isinstance(value, str) or len(value) > MAX_NAME or not is_storable(value):
            problems[name] = _("A text of at most %(count)s characters.") % {"count": MAX_NAME}
            continue
        found[name] = value
    if problems:
        raise Invalid(_("Some fields cannot be stored."), fields=problems)
    return found


def required(given: Mapping[str, object]) -> dict[str, str]:
    """The same, at least one of them. Raises ``Invalid``."""
    found = checked(given)
    if not found:
        raise Invalid(_("At least one of user_id, agent_id, app_id and run_id is needed."))
    return found


def member(memory: Memory) -> Mapping[str, Any]:
    """What only mem0's clients know of a memory."""
    held = memory.metadata.get(MEMBER)
    return held if isinstance(held, Mapping) else {}


def entities_of(memory: Memory) -> dict[str, str | None]:
    """The entities of a memory; None for those it has not."""
    held = member(memory)
    found = {name: held.get(name) for name in NAMES[:3]}
    return {name: value if isinstance(value, str) else None for name, value in found.items()} | {
        "run_id": memory.session_id or None
    }


def list_entities(principal: Principal, kind: str = "") -> list[Entity]:
    """Every entity with live memories, of one kind or of all, by kind and name."""
    access.require(principal, "read")
    _check_kind(kind or "user")
    kinds = [kind] if kind else KINDS
    return [entity for one in kinds for entity in _of_kind(principal, one)]


def _of_kind(principal: Principal, kind: str) -> list[Entity]:
    name = f"{kind}_id"
    at = F("session_id") if kind == "run" else KT(f"metadata__{MEMBER}__{name}")
    rows = own(principal).filter(has_any("", name)).order_by().annotate(entity=at).values("entity")
    counted = rows.annotate(count=Count("pk"), first=Min("created_at"), last=Max("updated_at"))
    return [
        Entity(kind, str(row["entity"]), row["count"], row["first"], row["last"])
        for row in counted.order_by("entity")
    ]


def find(principal: Principal, kind: str, name: str) -> Entity:
    """One entity. Raises ``NotFound`` when no live memory is of it."""
    access.require(principal, "read")
    _check_kind(kind)
    _check_name(name)
    rows = own(principal).filter(is_of("", f"{kind}_id", name)).order_by()
    found = rows.aggregate(count=Count("pk"), first=Min("created_at"), last=Max("updated_at"))
    if not found["count"]:
        raise _missing()
    return Entity(kind, name, found["count"], found["first"], found["last"])


def remove(principal: Principal, kind: str, name: str) -> int:
    """Put every memory of an entity in the trash; how many. Raises ``NotFound`` for none."""
    access.require(principal, "write")
    _check_kind(kind)
    _check_name(name)
    wanted = OfEntities({f"{kind}_id": name})
    count = clearing.clear(principal, clearing.Wanted(picked=wanted))
    if not count:
        raise _missing()
    return count


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        message = _("One of: %(choices)s.") % {"choices": ", ".join(KINDS)}
        raise Invalid(message, fields={"type": message})


def _check_name(name: str) -> None:
    """Raise ``NotFound`` for a name that none can have: Postgres would fail over some of them."""
    if not name or not is_storable(name):
        raise _missing()


def _missing() -> NotFound:
    return NotFound(_("There is no such entity."))
