"""What a point carries beside its vector, and a scope as a filter over it.

The filter is ``engine.scope_sql.where`` in Qdrant's words: every part of a scope is applied before
the nearest are chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from engine.columns.table import NO_VAULT
from engine.types import Scope

Filter: TypeAlias = "dict[str, list[dict[str, object]]]"

NEVER: Final = 253_402_300_799_999
"""Expiry of what does not expire: the end of the year 9999, exact in a 64-bit float."""

INDEXES: Final[Mapping[str, Mapping[str, object]]] = {
    # A tenant's points lie together, which keeps the search of one owner cheap.
    "owner": {"type": "keyword", "is_tenant": True},
    "vault": {"type": "integer", "lookup": True, "range": False},
    "session": {"type": "keyword"},
    "type": {"type": "keyword"},
    "is_shared": {"type": "bool"},
    "is_pinned": {"type": "bool"},
    "is_archived": {"type": "bool"},
    "retained_ms": {"type": "integer", "lookup": False, "range": True},
    "expires_ms": {"type": "integer", "lookup": False, "range": True},
}
"""Payload fields that filters ask for, each with an index."""


def is_empty(scope: Scope) -> bool:
    """Whether a scope names nobody, or keeps to nothing, so that it sees nothing."""
    if scope.only is not None and not scope.only:
        return True
    return scope.owners is not None and not (scope.owners or scope.include_shared or scope.vaults)


def filter_of(scope: Scope, *, without: Collection[int] = ()) -> Filter:
    """The points of a scope but for some; not for a scope that names nobody."""
    must: list[dict[str, object]] = [
        _match("is_archived", False),
        {"key": "expires_ms", "range": {"gt": scope.now_ms}},
        _readable(scope),
    ]
    if scope.session is not None:
        must.append(_match("session", scope.session))
    if scope.types:
        must.append(_any("type", sorted(memory_type.value for memory_type in scope.types)))
    if scope.only is not None:
        must.append({"has_id": sorted(scope.only)})
    must_not = [
        _lapsed(memory_type.value, cutoff)
        for memory_type, cutoff in sorted(scope.retained_after_ms.items())
    ]
    hidden = sorted(scope.excluded.union(without))
    if hidden:
        must_not.append({"has_id": hidden})
    return {"must": must, "must_not": must_not} if must_not else {"must": must}


def expired(now_ms: int) -> Filter:
    """Points of what has expired: no search sees them again unless they are edited."""
    return {"must": [{"key": "expires_ms", "range": {"lte": now_ms}}]}


def _readable(scope: Scope) -> dict[str, object]:
    outside = _match("vault", NO_VAULT)
    choices: list[dict[str, object]] = []
    if scope.owners is None:
        choices.append(outside)
    elif scope.owners:
        owners = _any("owner", [str(owner) for owner in sorted(scope.owners)])
        choices.append({"must": [outside, owners]})
    if scope.include_shared:
        choices.append({"must": [outside, _match("is_shared", True)]})
    if scope.vaults:
        choices.append(_any("vault", sorted(scope.vaults)))
    return choices[0] if len(choices) == 1 else {"should": choices}


def _lapsed(memory_type: str, cutoff: int) -> dict[str, object]:
    return {
        "must": [
            _match("type", memory_type),
            _match("is_pinned", False),
            {"key": "retained_ms", "range": {"lt": cutoff}},
        ]
    }


def _match(key: str, value: object) -> dict[str, object]:
    return {"key": key, "match": {"value": value}}


def _any(key: str, values: Collection[object]) -> dict[str, object]:
    return {"key": key, "match": {"any": list(values)}}
