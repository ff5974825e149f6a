"""Reading as mem0's clients do: pages by filter, and searches."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q
from django.utils.translation import gettext as _

from engine.keyword.limits import MAX_LIMIT, shorten_query
from engine.types import Fusion, Hit, Tier
from memory.clock import now
from memory.errors import Invalid
from memory.models import Memory
from memory.principal import Principal
from memory.services import access, audit, memories, retrieval
from memory.services.drafts import is_storable
from memory.services.mem0.entities import own, owner_of
from memory.services.metadata_filters import RowTest
from memory.services.retrieval import RetrievalView, RetrieveRequest

MAX_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page of memories, newest first. ``since`` is included, ``until`` is not."""

    picked: RowTest
    since: datetime | None = None
    until: datetime | None = None
    with_expired: bool = False
    page: int = 1
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Page:
    """The memories of a page, and how many there are in all."""

    rows: list[Memory]
    total: int


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that a search found; ``score`` is 0..1, best first."""

    memory: Memory
    score: float
    hit: Hit


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search among the memories that a test picks."""

    query: str
    picked: RowTest
    limit: int = 10
    threshold: float = 0.0
    with_expired: bool = False


def get(principal: Principal, memory_id: str) -> Memory:
    """One live memory of the caller. Raises ``NotFound``."""
    memory = memories.get(principal, memory_id)
    audit.record(principal, "memory.read", owner=memory.api_key, ids=[memory.pk])
    return memory


def list_page(principal: Principal, asked: PageRequest) -> Page:
    """One page; a page beyond the end is empty. What is out of retention is listed, as ours is."""
    access.require(principal, "read")
    started = time.perf_counter()
    rows = own(principal).filter(asked.picked.condition(""))
    if not asked.with_expired:
        rows = rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now()))
    if asked.since is not None:
        rows = rows.filter(created_at__gte=asked.since)
    if asked.until is not None:
        rows = rows.filter(created_at__lt=asked.until)
    first = (asked.page - 1) * asked.limit
    found = list(rows.order_by("-created_at", "-id")[first : first + asked.limit])
    if found:
        took_ms = (time.perf_counter() - started) * 1000
        ids = [row.pk for row in found]
        audit.record(
            principal, "memory.list", owner=owner_of(principal), ids=ids, duration_ms=took_ms
        )
    is_all = asked.page == 1 and len(found) < asked.limit
    return Page(found, len(found) if is_all else rows.count())


def search(principal: Principal, asked: SearchRequest) -> list[Found]:
    """What our one retrieval finds; a long query is shortened, as on the chat path.

    Raises ``Invalid`` for a limit below 1; at most 100 are found.
    """
    if asked.limit < 1:
        message = _("The limit must be between 1 and 100.")
        raise Invalid(message, fields={"top_k": message})
    if not is_storable(asked.query):
        message = _("This holds characters that are not valid text.")
        raise Invalid(message, fields={"query": message})
    request = RetrieveRequest(
        query=shorten_query(asked.query),
        limit=min(asked.limit, MAX_LIMIT),
        max_tokens=sys.maxsize,
        filters=asked.picked,
        with_expired=asked.with_expired,
    )
    view = retrieval.retrieve(principal, request, purpose="client")
    return [found for found in scored(view) if found.score >= asked.threshold]


def scored(view: RetrievalView) -> list[Found]:
    """Hits with scores from 0 to 1: as fused, or, where the tier has another scale, as shares of
    the best one."""
    hits = view.retrieval.hits
    best = max((hit.score for hit in hits), default=0.0)
    is_unit = view.retrieval.tier in (Tier.HYBRID, Tier.VECTOR) and 0 < best <= 1
    is_unit = is_unit and view.retrieval.fusion is not Fusion.RRF
    return [
        Found(view.memories[hit.passage.parent], _unit(hit.score, best, is_unit=is_unit), hit)
        for hit in hits
    ]


def _unit(score: float, best: float, *, is_unit: bool) -> float:
    if is_unit:
        return max(0.0, score)
    return max(0.0, score / best) if best > 0 else 1.0
