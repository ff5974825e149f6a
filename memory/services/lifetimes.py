"""The one rule of what may be seen: ``live()``, as columns of a scope and as a query filter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings as django_settings
from django.db.models import Q, QuerySet

from engine import decay
from engine.types import MemoryType, Scope
from memory import wiring
from memory.clock import now, to_ms
from memory.models import ApiKey, Memory, Passage
from memory.services import metadata_filters
from memory.services.metadata_filters import Filters
from memory.stored_settings import Settings

DECAY_SCAN = 5000
"""How many rows one typed decay looks at (first seed)."""

FEW = 2000
"""So many passages a search is told to keep to; of more it is told which to leave out."""


@dataclass(frozen=True, slots=True)
class View:
    """How a retrieval narrows or widens what its owners have."""

    session: str | None = None
    types: tuple[MemoryType, ...] = ()
    include_shared: bool = False
    with_retention: bool = True
    with_expired: bool = False
    filters: Filters | None = None


def scope(
    owners: Iterable[ApiKey] | None, *, view: View, settings: Settings | None = None
) -> Scope:
    """The scope of one retrieval now. ``owners`` None means every owner; the settings are read
    unless they were already."""
    moment = now()
    ids = None if owners is None else frozenset(owner.pk for owner in owners)
    only, left_out = _filtered(ids, view)
    return Scope(
        # Nothing has expired at the beginning of time.
        now_ms=0 if view.with_expired else to_ms(moment),
        owners=ids,
        include_shared=view.include_shared,
        session=view.session,
        types=frozenset(view.types),
        retained_after_ms=(
            cutoffs(settings or wiring.settings(), moment) if view.with_retention else {}
        ),
        excluded=_decayed(ids, moment, include_shared=view.include_shared) | left_out,
        only=only,
    )


def cutoffs(settings: Settings, moment: datetime) -> dict[MemoryType, int]:
    """For each type, the time in milliseconds before which a row is out of retention."""
    return {
        kind: to_ms(moment - timedelta(days=settings.days_for(kind.value))) for kind in MemoryType
    }


def hidden_reason(memory: Memory, *, settings: Settings, moment: datetime) -> str:
    """Why retrieval leaves a live row out: ``expired``, ``retention``, or an empty text."""
    if memory.expires_at is not None and memory.expires_at <= moment:
        return "expired"
    kept_since = moment - timedelta(days=settings.days_for(memory.type))
    if not memory.is_pinned and memory.retained_at < kept_since:
        return "retention"
    return ""


def hidden(settings: Settings, moment: datetime) -> Q:
    """Filter for live rows that retrieval leaves out."""
    outside = Q()
    for kind in MemoryType:
        kept_since = moment - timedelta(days=settings.days_for(kind.value))
        outside |= Q(type=kind.value, retained_at__lt=kept_since)
    return Q(expires_at__lte=moment) | (Q(is_pinned=False) & outside)


def live() -> Q:
    """Filter for rows that are neither trashed nor archived."""
    return Q(trashed_at__isnull=True, archived_at__isnull=True)


def _decayed(
    owners: frozenset[int] | None, moment: datetime, *, include_shared: bool
) -> frozenset[int]:
    """Ids of passages that typed decay hides; none while it is off."""
    policy = decay.policy_from_env(django_settings.MEMORY_TYPED_DECAY)
    if not policy.enabled:
        return frozenset()
    rows = _of(owners, include_shared=include_shared)
    columns = ("pk", "type", "created_ms", "is_pinned")
    use = ("memory__use__last_accessed_at", "memory__use__access_count")
    found = rows.order_by("created_ms").values_list(*columns, *use)[:DECAY_SCAN]
    return decay.decayed((_decay_row(*values) for values in found), policy, to_ms(moment))


def _of(owners: frozenset[int] | None, *, include_shared: bool) -> QuerySet[Passage]:
    """Passages of memories that these owners may see."""
    rows = Passage.objects.filter(is_archived=False, memory__isnull=False)
    if owners is None:
        return rows
    own = Q(owner__in=owners)
    return rows.filter(own | Q(is_shared=True) if include_shared else own)


def _filtered(
    owners: frozenset[int] | None, view: View
) -> tuple[frozenset[int] | None, frozenset[int]]:
    """Ids of the passages to keep to, when a filter over metadata leaves few; else None, and the
    ids of those to leave out."""
    if not view.filters:
        return None, frozenset()
    matched = metadata_filters.condition(view.filters, "memory__metadata")
    rows = _of(owners, include_shared=view.include_shared).order_by()
    if view.session is not None:
        rows = rows.filter(session=view.session)
    if view.types:
        rows = rows.filter(type__in=[kind.value for kind in view.types])
    kept = list(rows.filter(matched).values_list("pk", flat=True)[: FEW + 1])
    if len(kept) <= FEW:
        return frozenset(kept), frozenset()
    return None, frozenset(rows.filter(~matched).values_list("pk", flat=True))


def _decay_row(
    passage_id: int,
    kind: str,
    created_ms: int,
    is_pinned: bool,
    last_accessed_at: datetime | None,
    access_count: int | None,
) -> decay.DecayRow:
    return decay.DecayRow(
        id=passage_id,
        type=MemoryType(kind),
        created_ms=created_ms,
        last_accessed_ms=to_ms(last_accessed_at) if last_accessed_at else None,
        access_count=access_count or 0,
        is_pinned=is_pinned,
    )
