"""Reading the audit: who did what and when, in ids and counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memory.errors import Invalid
from memory.models import AuditEntry
from memory.principal import Principal
from memory.services import access

MAX_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What to list. ``action`` is a whole name (``memory.create``) or its beginning up to a dot
    (``memory``); ``since`` is included, ``until`` is not."""

    action: str = ""
    owner: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 50
    page: int = 1


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page, newest first. ``actors`` are those of the rows as the caller may know them."""

    rows: list[AuditEntry]
    actors: list[str]
    total: int
    page: int
    limit: int

    @property
    def total_pages(self) -> int:
        """How many pages there are."""
        return -(-self.total // self.limit)


def list_page(principal: Principal, wanted: AuditFilter) -> AuditPage:
    """One page of the audit; a page beyond the end is empty.

    A manager and the studio see every row; an ordinary key those about its own memories, whatever
    owner it names. Of the others who acted on these it learns the kind, not the name.
    """
    access.require(principal, "read")
    _check(wanted)
    rows = _filtered(principal, wanted)
    first = (wanted.page - 1) * wanted.limit
    found = list(rows.order_by("-at", "-id")[first : first + wanted.limit])
    return AuditPage(
        rows=found,
        actors=[_actor(principal, row) for row in found],
        total=rows.count(),
        page=wanted.page,
        limit=wanted.limit,
    )


def _check(wanted: AuditFilter) -> None:
    problems: dict[str, str] = {}
    if not 1 <= wanted.limit <= MAX_LIMIT:
        problems["limit"] = _("A number from 1 to %(most)s.") % {"most": MAX_LIMIT}
    if wanted.page < 1:
        problems["page"] = _("Pages start at 1.")
    if problems:
        raise Invalid(_("The list cannot be shown like that."), fields=problems)


def _filtered(principal: Principal, wanted: AuditFilter) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.select_related("owner")
    if not access.may_name_owners(principal):
        rows = rows.filter(owner=principal.owner)
    elif reference := access.reference_of(wanted.owner):
        rows = rows.filter(owner=access.find(reference))
    if wanted.action:
        one = rows.filter(action=wanted.action)
        rows = one | rows.filter(action__startswith=f"{wanted.action.rstrip('.')}.")
    if wanted.since is not None:
        rows = rows.filter(at__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(at__lt=wanted.until)
    return rows


def _actor(principal: Principal, row: AuditEntry) -> str:
    if row.actor == principal.label or access.may_name_owners(principal):
        return row.actor
    return row.actor.partition(":")[0]
