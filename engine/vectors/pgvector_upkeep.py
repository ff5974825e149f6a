"""What keeps a table of pgvector complete, measured from means that hold, and with its graph.

Everything here is made from the durable vectors; nothing is embedded again. It runs in a job, goes
on where an earlier one stopped, and one process does it at a time. A graph is made while writers
go on writing, which only works outside of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.database import DatabaseFailed, atomic, in_transaction
from engine.protocols import Connect, DatabaseConnection
from engine.types import Vector
from engine.vectors.centres import Centres
from engine.vectors.pgvector_options import PgVectorOptions
from engine.vectors.pgvector_search import wanted_graph
from engine.vectors.pgvector_tables import Generation, Register, Stored, is_made
from engine.vectors.table import VectorTable

PAGE: Final = 2_000
DRIFT: Final = 0.05
"""A mean that moved further since the table was made has the table made anew."""
PATIENCE_MS: Final = 500
"""A table is exchanged when nobody holds it for so long. Shorter than it takes Postgres to see two
that wait for one another: it is this one that gives way."""
BUILD_MEMORY_MB: Final = (64, 512)
BYTES_A_ROW: Final = 600
"""Links of a row in a graph, beside its vector."""

Progress = Callable[[int, int, str], None]
"""Called with rows done, rows in all, and what is done: ``filling`` or ``graph``."""

PAGE_OF: Final = """
    SELECT v.passage_id, v.vector, v.language FROM memory_vector v
    WHERE v.index_id = ? AND length(v.vector) = ? AND v.passage_id > ?
    ORDER BY v.passage_id LIMIT ? FOR SHARE"""
ESTIMATE: Final = "SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT ?) s"
GRAPHS: Final = """
    SELECT i.relname, x.indisvalid FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
    JOIN pg_am a ON a.oid = i.relam
    WHERE x.indrelid = to_regclass(?) AND a.amname = 'hnsw'"""
CREATE_GRAPH: Final = """
    CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw ({expression})
    WITH (ef_construction = 128)"""
EXPRESSIONS: Final = {
    "halfvec": "vector halfvec_ip_ops",
    "bit": "(binary_quantize(vector)::bit({dim})) bit_hamming_ops",
}
ADVANCE: Final = """
    SELECT p.phase, p.tuples_done, p.tuples_total FROM pg_stat_progress_create_index p
    WHERE p.relid = to_regclass(?)"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What ``maintain`` found and did.

    ``filled`` rows were copied; ``built`` names the graph that was made. ``waits`` tells why it
    should be called again: ``busy`` (another process does it, or searches hold the table),
    ``in_transaction`` (a graph cannot be made here), else empty.
    """

    filled: int = 0
    built: str = ""
    waits: str = ""


class Busy(Exception):
    """Another holds what is needed."""


class Upkeep:
    """The upkeep of one index."""

    def __init__(
        self,
        connect: Connect,
        *,
        table: VectorTable,
        index_id: int,
        dim: int,
        options: PgVectorOptions,
    ) -> None:
        self._connect = connect
        self._table = table
        self._index_id = index_id
        self._dim = dim
        self._options = options
        self._register = Register(index_id, dim)

    def begin(self, connection: DatabaseConnection) -> None:
        """Make the first table when there is none; it is complete where no vectors are."""
        if self._register.generations(connection):
            return
        with atomic(connection):
            if not self._register.seize(connection):
                is_empty = self._table.count() == 0
                self._register.begin(connection, 1, self._centres(connection), live=is_empty)

    def is_due(self) -> bool:
        """Whether ``maintain`` has something to do."""
        connection = self._connect()
        if not is_made(connection):
            return True
        generations = self._register.generations(connection)
        if not generations or not generations[-1].is_live:
            return True
        return self._has_drifted(connection, generations[-1]) or self._lacks_graph(
            connection, generations[-1]
        )

    def maintain(self, progress: Progress | None = None, *, anew: bool = False) -> Kept:
        """Fill what is not complete, make what is worth having, take away what is not.

        ``anew`` makes a fresh table whatever the present one is like.
        """
        connection = self._connect()
        tell = progress or _nothing
        self.begin(connection)
        with self._alone(connection) as is_ours:
            if not is_ours:
                return Kept(waits="busy")
            filled = 0
            try:
                target = self._target(connection, anew=anew)
                is_first = not any(g.is_live for g in self._register.generations(connection))
                filled = 0 if target.is_live else self._fill(connection, target, tell)
                if is_first:
                    # A scan answers until there is a graph.
                    self._exchange(connection, target)
                built = self._graph(connection, target, tell)
                self._exchange(connection, target)
            except Busy:
                return Kept(filled, waits="busy")
        lacks = self._lacks_graph(connection, target)
        return Kept(filled, built, "in_transaction" if lacks else "")

    def graph_progress(self, connection: DatabaseConnection) -> str:
        """How far a graph is that is being made just now; empty when none is."""
        for generation in self._register.generations(connection):
            row = connection.execute(ADVANCE, (generation.table,)).fetchone()
            if row is not None:
                phase, done, total = row
                return f"{phase} {round(100 * done / total)} %" if total else str(phase)
        return ""

    def _target(self, connection: DatabaseConnection, *, anew: bool) -> Generation:
        """The table to work on: the one being filled, a new one, or the live one."""
        newest = self._register.generations(connection)[-1]
        if not newest.is_live or not (anew or self._has_drifted(connection, newest)):
            return newest
        with self._seized(connection) as held:
            return self._register.begin(
                connection, held[-1].number + 1, self._centres(connection), live=False
            )

    def _fill(self, connection: DatabaseConnection, target: Generation, tell: Progress) -> int:
        """Copy every durable vector that the table does not hold yet; how many."""
        total, done, after = self._table.count(), 0, target.filled_to
        while True:
            with atomic(connection):
                # Held, so that nobody changes them between being read and being written.
                page: list[Stored] = connection.execute(
                    PAGE_OF, (self._index_id, self._dim * 4, after, PAGE)
                ).fetchall()
                if not page:
                    return done
                held = self._register.held(connection, target, [row[0] for row in page])
                self._register.put(connection, target, [row for row in page if row[0] not in held])
                after = page[-1][0]
                self._register.reached(connection, target, after)
            done += len(page)
            tell(done, max(total, done), "filling")

    def _exchange(self, connection: DatabaseConnection, target: Generation) -> None:
        """Make a complete table the live one, and remove the others. Raises ``Busy``."""
        if self._register.generations(connection) == [_live(target)]:
            return
        with self._seized(connection) as others:
            self._register.take_over(connection, target)
            for other in others:
                if other.number != target.number:
                    self._register.end(connection, other)

    def _graph(self, connection: DatabaseConnection, target: Generation, tell: Progress) -> str:
        """Make the graph that is wanted and drop every other; its kind, or empty."""
        if in_transaction(connection):
            return ""
        if not self._lacks_graph(connection, target):
            self._drop_graphs(connection, target, but=self._wanted())
            return ""
        kind = self._wanted() or ""
        # One that an earlier process has not completed.
        self._drop_graphs(connection, target, but=None, only_invalid=True)
        rows = self._rows(connection, target, 10**9)
        tell(0, rows, "graph")
        least, most = BUILD_MEMORY_MB
        memory = rows * (2 * self._dim + BYTES_A_ROW) * 1.2 / 2**20
        with self._settings(connection, min(most, max(least, round(memory)))):
            connection.execute(
                CREATE_GRAPH.format(
                    name=f"{target.table}_{kind}",
                    table=target.table,
                    expression=EXPRESSIONS[kind].format(dim=self._dim),
                )
            )
        connection.execute(f"ANALYZE {target.table}")
        self._drop_graphs(connection, target, but=kind)
        tell(rows, rows, "graph")
        return kind

    def _lacks_graph(self, connection: DatabaseConnection, target: Generation) -> bool:
        kind, least = self._wanted(), self._options.least
        if kind is None or self._rows(connection, target, least) < least:
            return False
        found = dict(connection.execute(GRAPHS, (target.table,)).fetchall())
        return not found.get(f"{target.table}_{kind}", False)

    def _drop_graphs(
        self,
        connection: DatabaseConnection,
        target: Generation,
        *,
        but: str | None,
        only_invalid: bool = False,
    ) -> None:
        for name, is_valid in connection.execute(GRAPHS, (target.table,)).fetchall():
            if name != f"{target.table}_{but}" and not (only_invalid and is_valid):
                connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")

    def _rows(self, connection: DatabaseConnection, target: Generation, most: int) -> int:
        sql = ESTIMATE.format(table=target.table)
        return int(connection.execute(sql, (most,)).fetchone()[0])

    def _wanted(self) -> str | None:
        return wanted_graph(self._options, self._dim)

    def _centres(self, connection: DatabaseConnection) -> Centres | None:
        """The means a table made now is measured from."""
        if not self._options.centred:
            return None
        own = {language: mean for language, (_, mean) in self._table.means(connection).items()}
        return Centres(own, self._options.means)

    def _has_drifted(self, connection: DatabaseConnection, generation: Generation) -> bool:
        centres = self._centres(connection)
        if centres is None:
            return bool(self._register.means(connection, generation))
        used = Centres(self._register.means(connection, generation))
        return any(
            _moved(used.of(language), centres.of(language))
            for language in {*centres.stored, *centres.packaged}
        )

    @contextmanager
    def _alone(self, connection: DatabaseConnection) -> Iterator[bool]:
        """Whether this process is the only one at it, which lasts longer than a transaction."""
        key = (f"pgvector-upkeep-{self._index_id}",)
        sql = "SELECT pg_try_advisory_lock(hashtextextended(?, 0))"
        is_ours = bool(connection.execute(sql, key).fetchone()[0])
        try:
            yield is_ours
        finally:
            if is_ours:
                # A connection that is gone has let go of it.
                with suppress(DatabaseFailed):
                    connection.execute("SELECT pg_advisory_unlock(hashtextextended(?, 0))", key)

    @contextmanager
    def _seized(self, connection: DatabaseConnection) -> Iterator[list[Generation]]:
        """A transaction while which no other writes. Raises ``Busy`` when others go on too long."""
        try:
            with atomic(connection):
                connection.execute(f"SET LOCAL lock_timeout = {PATIENCE_MS}")
                yield self._register.seize(connection)
                connection.execute("SET LOCAL lock_timeout = DEFAULT")
        except DatabaseFailed as error:
            raise Busy from error

    @contextmanager
    def _settings(self, connection: DatabaseConnection, memory_mb: int) -> Iterator[None]:
        connection.execute(f"SET maintenance_work_mem = '{memory_mb}MB'")
        connection.execute("SET statement_timeout = 0")
        try:
            yield
        finally:
            with suppress(DatabaseFailed):
                connection.execute("RESET statement_timeout")
                connection.execute("RESET maintenance_work_mem")


def _live(generation: Generation) -> Generation:
    return Generation(generation.index_id, generation.number, True, generation.filled_to)


def _moved(before: Vector | None, now: Vector | None) -> bool:
    if before is None or now is None:
        return before is not now
    return float(np.linalg.norm(before - now)) > DRIFT


def _nothing(_done: int, _total: int, _what: str) -> None:
    return
