"""The vector store that searches Qdrant.

Vectors are kept by another store, the durable one; Qdrant mirrors it (``engine.qdrant.mirror``). A
search sees what is committed all the same: what the mirror has not brought there yet is scored
here, and what Qdrant finds is held against the columns of the database before it counts.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from engine.database import FAILURES
from engine.errors import EngineError, Unavailable
from engine.protocols import VectorStore
from engine.qdrant import server as calls
from engine.qdrant import states
from engine.qdrant.centring import centred_rows
from engine.qdrant.errors import QdrantFailed
from engine.qdrant.filters import filter_of, is_empty
from engine.qdrant.guard import Guard
from engine.qdrant.mirror import Mirror
from engine.qdrant.server import Found, QdrantServer, Search
from engine.types import Candidate, Health, Scope, Signature, Vector
from engine.vectors.similarity import unit

MOST_FRESH: Final = 2_000
"""Changes that a search scores itself; with more, the durable store is asked instead."""
TIES: Final = 16
"""How many more points are asked for, so that equal scores come in the order of their ids."""


class QdrantStore:
    """``VectorStore`` named ``qdrant``, over the durable store of the same index. Thread-safe."""

    def __init__(
        self, durable: VectorStore, mirror: Mirror, server: QdrantServer, guard: Guard
    ) -> None:
        self._durable = durable
        self._mirror = mirror
        self._server = server
        self._guard = guard

    @property
    def name(self) -> str:
        return "qdrant"

    @property
    def signature(self) -> Signature:
        return self._durable.signature

    @property
    def is_loaded(self) -> bool:
        """Whether the client's library is in memory, so that a search need not wait for it."""
        return calls.is_loaded()

    def ensure(self) -> None:
        """Create the durable tables and that of the collections."""
        self._durable.ensure()
        self._mirror.states.ensure()

    def upsert(
        self,
        vectors: Mapping[int, Vector],
        *,
        hashes: Mapping[int, str],
        languages: Mapping[int, str] | None = None,
    ) -> None:
        """Store vectors durably; the mirror brings them to Qdrant."""
        self._durable.upsert(vectors, hashes=hashes, languages=languages)

    def delete(self, ids: Collection[int]) -> None:
        """Forget vectors; unknown ids are fine."""
        self._durable.delete(ids)

    def drop(self) -> None:
        """Remove every vector of this signature."""
        self._durable.drop()

    def count(self) -> int:
        """Vectors stored durably."""
        return self._durable.count()

    def hashes(self, ids: Collection[int]) -> Mapping[int, str]:
        """The hash each stored vector came with, of those among ``ids``."""
        return self._durable.hashes(ids)

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        """Nearest passages within the scope. Raises ``Unavailable`` when Qdrant cannot tell."""
        query = unit(vector, self.signature.dim)
        if limit <= 0 or is_empty(scope):
            return []
        try:
            live = self._live()
            fresh = self._fresh(live)
            centres = self._mirror.what.centres(live)
            asked = Search(
                collection=live.name,
                vector=centres.centred(query, language),
                scope=filter_of(scope, without=fresh),
                limit=limit + TIES,
                quantization=live.quantization,
            )
            found = self._guard.run(lambda: self._server.search(asked))
            scores = self._checked(found, fresh, live, asked.vector, scope)
        except FAILURES as error:
            raise Unavailable(f"The database cannot be read ({type(error).__name__}).") from error
        ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return [Candidate(key, rank, score) for rank, (key, score) in enumerate(ordered, start=1)]

    def state(self) -> Health:
        """``health``, but an outage that is known costs nothing. Never raises."""
        failure = self._guard.failure
        if failure is not None:
            try:
                self._guard.run(lambda: None)
            except QdrantFailed:
                return Health(False, str(failure), {"code": failure.code})
        return self.health()

    def health(self) -> Health:
        """Whether a real search works now, and how long it took. Never raises."""
        begun = time.perf_counter()
        detail: dict[str, str | int | float | bool | None] = {"dim": self.signature.dim}
        try:
            live = self._live()
            probe = unit([1.0] + [0.0] * (self.signature.dim - 1), self.signature.dim)
            asked = Search(live.name, probe, filter_of(Scope(now_ms=0, owners=None)), 1)
            self._guard.note(lambda: self._server.search(asked))
            detail["took_ms"] = round((time.perf_counter() - begun) * 1000, 2)
            detail |= {"collection": live.name, "points": self._server.points(live.name)}
            detail["behind"] = self._mirror.behind(MOST_FRESH)
        except EngineError as error:
            return Health(False, str(error), detail | {"code": error.code})
        except FAILURES as error:
            name = type(error).__name__
            fault = {"code": "unreadable", "error": name}
            return Health(False, f"The index cannot be read ({name}).", detail | fault)
        return Health(True, detail=detail)

    def _live(self) -> states.Collection:
        live = self._mirror.live()
        if live is None:
            raise QdrantFailed("The collection is still being built.", code="qdrant_building")
        return live

    def _fresh(self, live: states.Collection) -> set[int]:
        """Passages that the mirror has not brought to Qdrant as they are now."""
        rows = self._mirror.rows
        low, high = rows.bounds()
        is_followable = low - 1 <= live.position <= high
        if not is_followable or rows.behind(live.position, MOST_FRESH) > MOST_FRESH:
            raise QdrantFailed("The collection is behind the database.", code="qdrant_behind")
        return rows.changed(live.position, high)

    def _checked(
        self,
        found: Sequence[Found],
        fresh: set[int],
        live: states.Collection,
        asked: Vector,
        scope: Scope,
    ) -> dict[int, float]:
        """Scores of what was found and may be seen, and of what is fresh."""
        rows = self._mirror.rows
        hashes = rows.hashes([one.passage for one in found], scope) if found else {}
        scores = {
            one.passage: min(1.0, one.score)
            for one in found
            if one.passage not in fresh and hashes.get(one.passage) == one.text_hash
        }
        # A point whose text is another one by now counts with its new vector.
        stale = {one.passage for one in found if one.passage in hashes} - scores.keys()
        if stale or fresh:
            passages, languages, matrix = rows.within(stale | fresh, scope)
            if passages:
                near = centred_rows(self._mirror.what.centres(live), matrix, languages) @ asked
                scores |= dict(zip(passages, near.tolist(), strict=True))
        return scores
