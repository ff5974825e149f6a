"""Time as the services use it."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone


def now() -> datetime:
    """The present, aware, UTC."""
    return timezone.now()


def to_ms(moment: datetime) -> int:
    """Milliseconds since the epoch, rounded down."""
    return int(moment.timestamp() * 1000)


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 with milliseconds and ``Z``, as the first seed writes times."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
