"""Statistics of a server's tables, by which it chooses how to carry a statement out."""

from __future__ import annotations

from typing import Final

from django.db import connection

MANY: Final = 256
"""So many new rows may make the plans of before several times too slow."""
OURS: Final = "memory_"


def learn(rows: int) -> bool:
    """Have the server look at our tables after a job that wrote so many rows; whether it did.

    By itself it looks once a minute, and searches are slow until then. SQLite chooses without.
    """
    if rows < MANY or connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
        ours = [connection.ops.quote_name(name) for name in names if name.startswith(OURS)]
        # Not those that are being changed or looked at just now: nothing waits for this.
        cursor.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(ours)}")
    return True
