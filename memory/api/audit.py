"""``/api/audit``: who did what and when."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from memory.api.auth import caller
from memory.api.schemas.audit import AuditList, AuditQuery
from memory.clock import iso
from memory.models import AuditEntry
from memory.services import audit_log
from memory.services.audit_log import AuditFilter

router = Router(tags=["audit"], by_alias=True)


@router.get("", response=AuditList)
def list_audit(request: HttpRequest, filters: Query[AuditQuery]) -> dict[str, Any]:
    """The audit, newest first: every row for a manager, those about itself for a key."""
    page = audit_log.list_page(
        caller(request),
        AuditFilter(
            action=filters.action,
            owner=filters.api_key_id or None,
            since=filters.since,
            until=filters.until,
            limit=filters.limit,
            page=filters.page,
        ),
    )
    return {
        "data": [_out(row, actor) for row, actor in zip(page.rows, page.actors, strict=True)],
        "total": page.total,
        "page": page.page,
        "limit": page.limit,
        "total_pages": page.total_pages,
    }


def _out(row: AuditEntry, actor: str) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": iso(row.at),
        "actor": actor,
        "action": row.action,
        "apiKeyId": str(row.owner.uid) if row.owner else None,
        "apiKeyName": row.owner.name if row.owner else None,
        "targetIds": [str(target) for target in row.target_ids],
        "count": row.count,
        "durationMs": row.duration_ms,
        "detail": row.detail,
    }
