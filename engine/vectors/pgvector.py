"""Vectors in Postgres, searched there by pgvector.

The durable rows are those of every other store (``engine.vectors.table``); the table that is
searched is derived from them and written in the same transaction. ``maintain`` is what a job calls
after much was written: it fills a table that is not complete, and makes the graph.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from engine.database import DatabaseFailed, atomic
from engine.errors import EngineError, Unavailable
from engine.protocols import Connect
from engine.types import Candidate, Health, Scope, Signature, Vector
from engine.vectors import pgvector_tables
from engine.vectors.in_process import InProcessIndex
from engine.vectors.pgvector_options import PgVectorOptions, available
from engine.vectors.pgvector_search import Filling, PgVectorSearch, wanted_graph
from engine.vectors.pgvector_tables import IS_READY, Register
from engine.vectors.pgvector_upkeep import Kept, Progress, Upkeep
from engine.vectors.similarity import unit
from engine.vectors.stored import StoredVectors
from engine.vectors.table import VectorTable

DEFAULTS: Final = PgVectorOptions()
ARE_THERE: Final = f"""
    SELECT to_regclass('memory_vector') IS NOT NULL AND ({IS_READY})
        AND to_regclass('memory_pgvector_' || ? || '_1') IS NOT NULL"""
"""Whether the tables are as ``ensure`` makes them; of later generations it does not know."""
COUNTED: Final = 200_000
"""Rows up to which a health check counts them."""


class PgVectorStore:
    """``VectorStore`` named ``pgvector``. ``index_id`` numbers the signature in the table.

    Thread-safe. The database has the extension: ``pgvector_options.available`` tells.
    ``meanwhile`` answers while the table is still being filled; without it a search raises.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        signature: Signature,
        index_id: int,
        options: PgVectorOptions = DEFAULTS,
        meanwhile: InProcessIndex | None = None,
    ) -> None:
        self.meanwhile = meanwhile
        self._key = (index_id,)
        self._has_ensured = False
        self._connect = connect
        self._signature = signature
        self._options = options
        self._table = VectorTable(connect, index_id=index_id, dim=signature.dim)
        self._stored = StoredVectors(connect, index_id=index_id, dim=signature.dim)
        self._register = Register(index_id, signature.dim)
        self._search = PgVectorSearch(index_id, signature.dim, options)
        self._upkeep = Upkeep(
            connect, table=self._table, index_id=index_id, dim=signature.dim, options=options
        )

    @property
    def name(self) -> str:
        return "pgvector"

    @property
    def signature(self) -> Signature:
        return self._signature

    @property
    def is_loaded(self) -> bool:
        """Whether a search costs no loading, as it does where another store answers meanwhile."""
        if self.meanwhile is None or self.meanwhile.is_loaded:
            return True
        return self._search.live(self._connect()) is not None

    def ensure(self) -> None:
        """Create the tables when absent. Raises ``Unavailable`` where pgvector cannot be."""
        connection = self._connect()
        if self._has_ensured and connection.execute(ARE_THERE, self._key).fetchone()[0]:
            return
        found = available(connection)
        if not found.available:
            raise Unavailable(found.reason, code=str(found.detail["code"]))
        self._table.ensure()
        pgvector_tables.ensure(connection)
        self._upkeep.begin(connection)
        self._has_ensured = True

    def upsert(
        self,
        vectors: Mapping[int, Vector],
        *,
        hashes: Mapping[int, str],
        languages: Mapping[int, str] | None = None,
    ) -> None:
        """Store vectors at unit length, all or none.

        Raises ``DimensionMismatch``, ``ZeroVector`` or ``UnknownPassage``.
        """
        words = languages or {}
        rows = [
            (passage_id, hashes[passage_id], words.get(passage_id, ""), self._encode(vector))
            for passage_id, vector in sorted(vectors.items())
        ]
        if not rows:
            return
        connection = self._connect()
        self._upkeep.begin(connection)
        with atomic(connection):
            held = self._register.hold(connection)
            self._table.store(rows)
            self._register.replace(connection, held, [(row[0], row[3], row[2]) for row in rows])

    def delete(self, ids: Collection[int]) -> None:
        """Forget vectors; unknown ids are fine."""
        if not ids:
            return
        connection = self._connect()
        with atomic(connection):
            held = self._register.hold(connection)
            self._table.forget(ids)
            self._register.remove(connection, held, ids)

    def drop(self) -> None:
        """Remove every vector of this signature, and the tables made of them."""
        connection = self._connect()
        with atomic(connection):
            held = self._register.seize(connection)
            self._table.forget_all()
            for generation in held:
                self._register.end(connection, generation)
        self._search.forget()

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        """Nearest passages within the scope; scores as the in-process index has them.

        Without a ``language`` an index that is centred looks among more rows, and may miss one.
        """
        query = unit(vector, self._signature.dim)
        try:
            return self._search.search(
                self._connect(), query, scope=scope, limit=limit, language=language
            )
        except Filling:
            if self.meanwhile is None:
                raise
            return self.meanwhile.search(query, scope=scope, limit=limit, language=language)
        except DatabaseFailed as error:
            raise Unavailable(f"The index cannot be read ({error}).") from error

    def hashes(self, ids: Collection[int]) -> Mapping[int, str]:
        """The text hashes that stored vectors came with."""
        return self._stored.hashes(ids)

    def count(self) -> int:
        """Vectors stored."""
        return self._table.count()

    def maintain(self, progress: Progress | None = None) -> Kept:
        """Bring the tables into the shape they should have; ends at once where they are in it.

        Call it outside of a transaction: a graph cannot be made inside one.
        """
        try:
            return self._upkeep.maintain(progress)
        finally:
            self._search.forget()
            if self.meanwhile is not None:
                self.meanwhile.forget()

    def rebuild(self, progress: Progress | None = None) -> Kept:
        """Make the searched table anew beside the present one, then put it in its place."""
        try:
            return self._upkeep.maintain(progress, anew=True)
        finally:
            self._search.forget()

    def is_due(self) -> bool:
        """Whether ``maintain`` has something to do."""
        return self._upkeep.is_due()

    def health(self) -> Health:
        """Whether a real search works now. Never raises."""
        probe = np.zeros(self._signature.dim, np.float32)
        probe[:1] = 1.0
        begun = time.perf_counter()
        try:
            self.search(probe, scope=Scope(now_ms=0, owners=None), limit=1)
            took_ms = round((time.perf_counter() - begun) * 1000, 2)
            return Health(
                True, detail={"dim": self._signature.dim, "took_ms": took_ms, **self._detail()}
            )
        except EngineError as error:
            return Health(False, str(error), {"code": error.code})
        except Exception as error:  # the driver's own errors; a health check reports them all
            name = type(error).__name__
            return Health(False, f"The index cannot be read ({name}).", {"code": "unreadable"})

    def _detail(self) -> dict[str, str | int]:
        connection = self._connect()
        live = self._search.live(connection)
        found: dict[str, str | int] = {"graph": ", ".join(sorted(live.graphs)) if live else ""}
        if live is not None and live.rows <= COUNTED:
            found["rows"] = self._table.count()
        building = self._upkeep.graph_progress(connection)
        if building:
            found["building"] = building
        if live is None and self._table.count():
            found["notice"] = "filling"
        if self._options.quantization == "int8":
            found["notice"] = "halfvec_for_int8"
        if wanted_graph(self._options, self._signature.dim) is None:
            found["notice"] = "scan_only"
        return found

    def _encode(self, vector: Vector) -> bytes:
        return unit(vector, self._signature.dim).astype("<f4").tobytes()
