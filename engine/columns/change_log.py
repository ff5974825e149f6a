"""The change log that everything follows which mirrors passages: one entry for each change.

A follower remembers a position, and asks for what changed after it. On SQLite a position is the
number of an entry. On Postgres transactions commit in another order than they write, so it is
the number of a transaction: below ``high`` all have ended. Later entries that are visible already
are told too, and told again until their transaction lies below: applying one twice is harmless.

The log is never empty once ``ensure`` has run, so that its first entry tells whether a follower
has missed some: older entries are pruned.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from engine.database import SQLITE, dialect_of
from engine.protocols import DatabaseConnection
from engine.scope_sql import CHANGES

NOTHING: Final = 0
"""Passage of an entry that is about none."""

BOUNDS: Final = f"SELECT (SELECT MIN(id) FROM {CHANGES}), (SELECT MAX(id) FROM {CHANGES})"
CHANGED: Final = f"SELECT DISTINCT passage_id FROM {CHANGES} WHERE id > ? AND id <= ?"
SERVER_BOUNDS: Final = f"""
    SELECT (SELECT MIN(txid) FROM {CHANGES} WHERE txid > 0),
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1"""
SERVER_CHANGED: Final = f"SELECT DISTINCT passage_id FROM {CHANGES} WHERE txid > ? AND txid > 0"
# Not those that were visible before: nothing is told twice for longer than it takes to ask.
SERVER_NEWS: Final = f"""{SERVER_CHANGED}
    AND NOT pg_visible_in_snapshot(txid::text::xid8, CAST(? AS pg_snapshot))"""
SNAPSHOT: Final = "SELECT pg_current_snapshot()::text"
RECORD: Final = f"INSERT INTO {CHANGES} (passage_id) VALUES (?)"
# What a restored copy brings from a server whose numbers were higher.
FUTURE: Final = f"""
    DELETE FROM {CHANGES} WHERE txid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
        AND txid <> pg_current_xact_id()::text::bigint"""
IS_EMPTY: Final = f"SELECT NOT EXISTS (SELECT 1 FROM {CHANGES})"
CUT: Final = f"SELECT {{position}} FROM {CHANGES} ORDER BY {{position}} DESC LIMIT 1 OFFSET ?"
PRUNE: Final = f"DELETE FROM {CHANGES} WHERE {{position}} < ?"


def ensure(connection: DatabaseConnection) -> None:
    """Make a log that followers can trust; its table exists."""
    if dialect_of(connection) is SQLITE:
        return
    connection.execute(FUTURE)
    if connection.execute(IS_EMPTY).fetchone()[0]:
        record(connection, [NOTHING])


def bounds(connection: DatabaseConnection) -> tuple[int, int]:
    """First and last position of the log."""
    sql = BOUNDS if dialect_of(connection) is SQLITE else SERVER_BOUNDS
    low, high = connection.execute(sql).fetchone()
    return low or 1, high or 0


def snapshot(connection: DatabaseConnection) -> str:
    """What is visible now, for ``changed`` to leave out; empty where positions say it all."""
    if dialect_of(connection) is SQLITE:
        return ""
    return str(connection.execute(SNAPSHOT).fetchone()[0])


def changed(connection: DatabaseConnection, after: int, until: int, *, told: str = "") -> set[int]:
    """Passages that changed after one position, up to another (on Postgres, up to now).

    ``told`` is a snapshot taken, outside of a transaction, before an earlier call with the same
    ``after``: what was visible then is left out.
    """
    if dialect_of(connection) is SQLITE:
        found = connection.execute(CHANGED, (after, until)).fetchall()
    elif told:
        found = connection.execute(SERVER_NEWS, (after, told)).fetchall()
    else:
        found = connection.execute(SERVER_CHANGED, (after,)).fetchall()
    return {int(row[0]) for row in found}


def record(connection: DatabaseConnection, ids: Collection[int]) -> None:
    """Write entries, in the transaction of the change they are about."""
    if ids:
        connection.executemany(RECORD, [(passage_id,) for passage_id in ids])


def prune(connection: DatabaseConnection, keep: int) -> None:
    """Forget all but so many of the newest entries, at least one."""
    position = "id" if dialect_of(connection) is SQLITE else "txid"
    row = connection.execute(CUT.replace("{position}", position), (keep - 1,)).fetchone()
    if row is not None:
        connection.execute(PRUNE.replace("{position}", position), (row[0],))
