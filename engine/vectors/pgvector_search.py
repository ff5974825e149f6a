"""How pgvector is asked: which way a search goes, and exact scores for what it found.

A search scans every row it may see while that is cheaper: a small owner beside a huge one gets its
hits, whatever else lies near. Otherwise a graph proposes rows, and the scope is applied while it
goes on proposing; when too few are left, the scan answers after all. Half floats choose, the
durable vectors give the scores, so that they are those of every other store.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import psycopg

from engine import scope_sql
from engine.database import POSTGRESQL, DatabaseFailed, in_transaction
from engine.errors import Unavailable
from engine.postgres import failing
from engine.protocols import DatabaseConnection
from engine.scope_sql import TABLE
from engine.types import Candidate, Matrix, Scope, Vector
from engine.vectors.base import owner_block, vault_block
from engine.vectors.centres import Centres
from engine.vectors.pgvector_options import PgVectorOptions
from engine.vectors.pgvector_tables import Generation, Register, measured, raw_of

SPARE: Final = 32
"""So many more are looked at than asked for, since half floats only choose."""
PLAIN_SPARE: Final = 256
"""The same where vectors are measured from means and the query is not."""
WIDEN: Final = 4
MOST: Final = 20_000
SAME: Final = 1e-6
"""Distances of equal half floats."""
ROUNDING: Final = 1e-3
"""The most that two roundings to half floats change a product of unit vectors."""
TYPICAL_ROUNDING: Final = 4e-3
"""Ten standard deviations of that, for one dimension; many dimensions even one another out."""
GROWTH: Final = 26
"""A graph pays from ``GROWTH * sqrt(rows in the table)`` rows on: it walks past the others' rows,
as many as there are for each one of ours (measured, docs/benchmarks.md)."""
EFFORT: Final = (240, 1000)
"""Neighbours kept in view over 100,000 rows, and the most that pgvector takes."""
EFFORT_GROWTH: Final = 0.25
SCAN_LEAST: Final = 20_000
OVERSAMPLED: Final = 4
"""Bits choose so many times more rows than are asked for."""
FRESH_S: Final = 30.0
"""What is known of the table, and of the number of rows within reach, is looked up this often."""
KNOWN_SIZES: Final = 4096

LIVE: Final = """
    SELECT m.generation, m.filled_to, c.reltuples, COALESCE((
        SELECT string_agg(i.relname, ',') FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
        WHERE x.indrelid = c.oid AND x.indisvalid), '')
    FROM memory_pgvector m LEFT JOIN pg_class c
        ON c.oid = to_regclass('memory_pgvector_' || m.index_id || '_' || m.generation)
    WHERE m.index_id = ? AND m.is_live"""
KNOWN: Final = """
    SELECT to_regclass('memory_pgvector') IS NOT NULL
        AND EXISTS (SELECT 1 FROM memory_vector WHERE index_id = ?)"""
# A sum has no index: this one scans. What the scope asks beyond the place is looked up for the
# nearest only, until there are enough.
SCAN: Final = f"""
    SELECT s.passage_id, s.near FROM (
        SELECT d.passage_id, (d.vector <#> CAST(? AS halfvec)) + 0 AS near
        FROM {{table}} d WHERE {{place}} ORDER BY near, d.passage_id) s
    JOIN {TABLE} p ON p.id = s.passage_id
    WHERE {{scope}} ORDER BY s.near, s.passage_id LIMIT ?"""
SCAN_OF_FEW: Final = f"""
    SELECT d.passage_id, (d.vector <#> CAST(? AS halfvec)) + 0 AS near
    FROM {{table}} d JOIN {TABLE} p ON p.id = d.passage_id
    WHERE {{place}} AND {{scope}} ORDER BY near, d.passage_id LIMIT ?"""
WALK: Final = f"""
    SELECT d.passage_id, d.vector <#> CAST(? AS halfvec) AS near
    FROM {{table}} d JOIN {TABLE} p ON p.id = d.passage_id
    WHERE {{place}} AND {{scope}}
    ORDER BY d.vector <#> CAST(? AS halfvec) LIMIT ?"""
WALK_BITS: Final = f"""
    SELECT x.passage_id, x.vector <#> CAST(? AS halfvec) AS near FROM (
        SELECT d.passage_id, d.vector FROM {{table}} d JOIN {TABLE} p ON p.id = d.passage_id
        WHERE {{place}} AND {{scope}}
        ORDER BY binary_quantize(d.vector)::bit({{dim}})
            <~> binary_quantize(CAST(? AS halfvec({{dim}}))) LIMIT ?) x"""
WITH_VECTORS: Final = """
    WITH near AS MATERIALIZED ({found}),
    cut AS (SELECT MAX(near) AS far FROM (SELECT near FROM near ORDER BY near LIMIT ?) c)
    SELECT n.passage_id, n.near, v.vector, v.language
    FROM near n LEFT JOIN memory_vector v ON v.index_id = ? AND v.passage_id = n.passage_id
        AND length(v.vector) = ? AND n.near <= (SELECT far FROM cut) + ?"""
COUNT: Final = "SELECT COUNT(*) FROM (SELECT 1 FROM {table} d WHERE {place} LIMIT ?) s"


class Filling(Unavailable):
    """There is no table yet that holds every vector."""

    code = "filling"


Row = tuple[int, float, bytes | None, str | None]
"""Passage, rough distance, durable vector where it may be among the best, language."""


@dataclass(frozen=True, slots=True)
class Live:
    """What is known of the table that is searched."""

    generation: Generation
    centres: Centres
    rows: int
    graphs: frozenset[str]
    until: float


@dataclass(frozen=True, slots=True)
class Asked:
    """One search. ``query`` is measured like the rows; ``depth`` rows are looked at."""

    live: Live
    query: Vector
    literal: str
    scope: Scope
    limit: int
    depth: int
    is_plain: bool


class PgVectorSearch:
    """Searches of one index; remembers what it knows of the table for a while."""

    def __init__(self, index_id: int, dim: int, options: PgVectorOptions) -> None:
        self._index_id = index_id
        self._dim = dim
        self._options = options
        self._register = Register(index_id, dim)
        self._live: Live | None = None
        self._sizes: dict[tuple[object, ...], tuple[int, float]] = {}
        self._noise = min(ROUNDING, TYPICAL_ROUNDING / math.sqrt(dim))

    def search(
        self,
        connection: DatabaseConnection,
        query: Vector,
        *,
        scope: Scope,
        limit: int,
        language: str,
    ) -> list[Candidate]:
        """The best within the scope. Raises ``Unavailable`` while the table is being filled."""
        if limit <= 0 or not (scope.owners is None or _names_any(scope)):
            return []
        try:
            return self._search(connection, query, scope, limit, language)
        except DatabaseFailed as error:
            if not isinstance(error.__cause__, psycopg.errors.UndefinedTable):
                raise
            # Another process has put a new table in its place.
            self.forget()
            return self._search(connection, query, scope, limit, language)

    def forget(self) -> None:
        """Look everything up again."""
        self._live = None
        self._sizes.clear()

    def live(self, connection: DatabaseConnection) -> Live | None:
        """The table that is searched now; None while there is none that is complete."""
        known, now = self._live, time.monotonic()
        if known is None or known.until < now or in_transaction(connection):
            known = self._live = self._looked_up(connection, now)
        return known

    def _looked_up(self, connection: DatabaseConnection, now: float) -> Live | None:
        row = connection.execute(LIVE, (self._index_id,)).fetchone()
        if row is None:
            return None
        generation = Generation(self._index_id, row[0], True, row[1])
        old = self._live
        if old is not None and old.generation == generation:
            centres = old.centres
        else:
            centres = Centres(self._register.means(connection, generation))
        names = row[3].split(",")
        graphs = {kind for kind in ("halfvec", "bit") if f"{generation.table}_{kind}" in names}
        rows = max(0, int(row[2] or 0))
        return Live(generation, centres, rows, frozenset(graphs), now + FRESH_S)

    def _search(
        self,
        connection: DatabaseConnection,
        query: Vector,
        scope: Scope,
        limit: int,
        language: str,
    ) -> list[Candidate]:
        live = self.live(connection)
        if live is None:
            if connection.execute(KNOWN, (self._index_id,)).fetchone()[0]:
                raise Filling("The index is being filled.")
            return []
        is_plain = bool(live.centres.stored) and not language
        moved = query if is_plain else live.centres.centred(query, language)
        asked = Asked(
            live=live,
            query=moved,
            literal="[" + ",".join(f"{value:.6g}" for value in moved.tolist()) + "]",
            scope=scope,
            limit=limit,
            depth=WIDEN * limit + PLAIN_SPARE if is_plain else limit + SPARE,
            is_plain=is_plain,
        )
        rows = self._walked(connection, asked)
        if rows is None:
            rows = self._scanned(connection, asked)
        return self._scored(rows, asked)

    def _walked(self, connection: DatabaseConnection, asked: Asked) -> Sequence[Row] | None:
        """Rows by a graph; None when they must be scanned for."""
        live, wanted = asked.live, wanted_graph(self._options, self._dim)
        kind = wanted if wanted in live.graphs else next(iter(live.graphs), None)
        # A small part of many rows: nearly all that is proposed would go.
        if kind is None or _is_small(asked.scope):
            return None
        worth = self._worth(live.rows, kind)
        if worth and self._size(connection, asked, worth + 1) <= worth:
            return None
        passed = self._widened(asked, kind) * live.rows / max(1, worth)
        settings = self._settings(live.rows, self._widened(asked, kind), passed)
        rows = self._run(connection, asked, *self._walk(kind, asked), settings)
        is_full = len(rows) >= asked.depth
        if not is_full or rows[-1][1] - rows[asked.limit - 1][1] < SAME:
            return None
        return rows

    def _walk(self, kind: str, asked: Asked) -> tuple[str, list[object]]:
        place, place_params, scope, scope_params = _conditions(asked.scope)
        words = {
            "table": asked.live.generation.table,
            "place": place,
            "scope": scope,
            "dim": self._dim,
        }
        narrowed = [*place_params, *scope_params]
        if kind == "bit":
            params = [asked.literal, *narrowed, asked.literal, self._widened(asked, kind)]
            return WALK_BITS.format(**words), params
        return WALK.format(**words), [asked.literal, *narrowed, asked.literal, asked.depth]

    def _scanned(self, connection: DatabaseConnection, asked: Asked) -> Sequence[Row]:
        """Every row that may be among the best."""
        place, place_params, scope, scope_params = _conditions(asked.scope)
        template = SCAN_OF_FEW if _is_small(asked.scope) else SCAN
        sql = template.format(table=asked.live.generation.table, place=place, scope=scope)
        while True:
            params = [asked.literal, *place_params, *scope_params, asked.depth]
            rows = self._run(connection, asked, sql, params, {"jit": "off"})
            if len(rows) < asked.depth or asked.is_plain or asked.depth >= MOST:
                return rows
            if rows[-1][1] - rows[asked.limit - 1][1] > self._noise:
                return rows
            asked = replace(asked, depth=WIDEN * asked.depth)

    def _run(
        self,
        connection: DatabaseConnection,
        asked: Asked,
        found: str,
        params: list[object],
        settings: dict[str, str],
    ) -> list[Row]:
        """Rows in the order of their rough distances; settings hold for this statement alone."""
        noise = 2.0 if asked.is_plain else self._noise
        statement = WITH_VECTORS.format(found=found)
        values = [*params, asked.limit, self._index_id, self._dim * 4, noise]
        rows = run(connection, settings, statement, values)
        return sorted(rows, key=lambda row: (row[1], row[0]))

    def _settings(self, rows: int, wanted: int, passed: float) -> dict[str, str]:
        """For a walk to so many rows, past so many that may all be another's."""
        effort = round(EFFORT[0] * max(1.0, rows / 100_000) ** EFFORT_GROWTH)
        return {
            "jit": "off",
            "enable_sort": "off",
            "hnsw.ef_search": str(min(EFFORT[1], max(effort, wanted))),
            "hnsw.iterative_scan": "relaxed_order",
            "hnsw.max_scan_tuples": str(max(SCAN_LEAST, round(4 * passed))),
        }

    def _widened(self, asked: Asked, kind: str) -> int:
        """Rows that a graph is asked for; bits are rough, and more of them are looked at."""
        return asked.depth * (OVERSAMPLED if kind == "bit" else 1)

    def _worth(self, rows: int, kind: str) -> int:
        """Rows within reach from which a graph is the faster way.

        Of ``n`` rows among ``rows`` a scan reads ``n``, a walk passes ``wanted * rows / n``.
        """
        least = self._options.least
        growth = GROWTH * (math.sqrt(OVERSAMPLED) if kind == "bit" else 1.0)
        return max(least, round(growth * math.sqrt(rows))) if least else 0

    def _size(self, connection: DatabaseConnection, asked: Asked, most: int) -> int:
        """Rows within reach, counted up to a number."""
        scope = asked.scope
        if scope.owners is None:
            return asked.live.rows
        key = (scope.owners, scope.vaults, scope.include_shared, asked.live.generation.number)
        now = time.monotonic()
        size, until = self._sizes.get(key, (0, 0.0))
        if until < now:
            place, params = _place(scope)
            sql = COUNT.format(table=asked.live.generation.table, place=place)
            size = run(connection, {}, sql, [*params, most])[0][0]
            if len(self._sizes) >= KNOWN_SIZES:
                self._sizes.clear()
            self._sizes[key] = (size, now + FRESH_S)
        return size

    def _scored(self, rows: Sequence[Row], asked: Asked) -> list[Candidate]:
        """The best by exact scores; ties by passage id."""
        kept = [row for row in rows if row[2] is not None]
        if not kept:
            return []
        joined = b"".join(row[2] or b"" for row in kept)
        matrix: Matrix = np.frombuffer(joined, "<f4").reshape(-1, self._dim)
        centres = Centres() if asked.is_plain else asked.live.centres
        rows_left = measured(matrix, [row[3] or "" for row in kept], centres)
        scores = np.clip((rows_left * asked.query.astype(np.float64)).sum(axis=1), -1.0, 1.0)
        passages = np.array([row[0] for row in kept], np.int64)
        order = np.lexsort((passages, -scores))[: asked.limit]
        return [
            Candidate(int(passages[place]), rank, float(scores[place]))
            for rank, place in enumerate(order, start=1)
        ]


def wanted_graph(options: PgVectorOptions, dim: int) -> str | None:
    """The kind of graph an index should have; None when no kind takes so many dimensions."""
    if options.quantization == "binary":
        return "bit"
    return "halfvec" if dim <= 4000 else None


def run(
    connection: DatabaseConnection,
    settings: dict[str, str],
    statement: str,
    params: Sequence[object],
) -> list[Any]:
    """The rows of a statement under settings of its own, in one message to the server."""
    chosen = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    first = f"SELECT {chosen};" if chosen else ""
    sql = (first + statement.replace("%", "%%").replace("?", "%s")).encode()
    raw = raw_of(connection)
    with failing():
        if not in_transaction(connection):
            # Both statements are one transaction: the settings end with it.
            return _last(psycopg.ClientCursor(raw).execute(sql, params))
        with raw.transaction(force_rollback=True):
            return _last(psycopg.ClientCursor(raw).execute(sql, params))


def _last(cursor: psycopg.Cursor[Any]) -> list[Any]:
    while cursor.nextset():
        pass
    return cursor.fetchall()


def _is_small(scope: Scope) -> bool:
    """Whether a scope is a small part of what lies in its blocks."""
    return bool(scope.session) or scope.only is not None


def _names_any(scope: Scope) -> bool:
    return bool(scope.owners) or bool(scope.vaults) or scope.include_shared


def _conditions(scope: Scope) -> tuple[str, list[object], str, list[object]]:
    place, place_params = _place(scope)
    condition, params = scope_sql.where(scope, dialect=POSTGRESQL)
    return place, place_params, condition, params


def _place(scope: Scope) -> tuple[str, list[object]]:
    """The blocks of a scope, as a condition on the table that is searched."""
    if scope.owners is None:
        return "true", []
    blocks: list[object] = [owner_block(owner) for owner in sorted(scope.owners)]
    blocks += [vault_block(vault) for vault in sorted(scope.vaults)]
    choices = [f"d.block IN ({', '.join('?' * len(blocks))})"] if blocks else []
    if scope.include_shared:
        choices.append("d.is_shared")
    return f"({' OR '.join(choices)})", blocks
