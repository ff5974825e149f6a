"""The in-process index in a database that pgvector was used in before, and may be again.

What pgvector searches is kept current, whichever store is chosen: going back to it costs nothing.
Nothing is made that is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from engine.database import atomic
from engine.protocols import Connect
from engine.types import Signature, Vector
from engine.vectors.in_process import InProcessIndex
from engine.vectors.pgvector_tables import Register
from engine.vectors.state import Options

DEFAULTS: Final = Options()


class InProcessBesidePgVector(InProcessIndex):
    """``InProcessIndex`` that also writes to the tables of pgvector."""

    def __init__(
        self,
        connect: Connect,
        *,
        signature: Signature,
        index_id: int,
        options: Options = DEFAULTS,
    ) -> None:
        super().__init__(connect, signature=signature, index_id=index_id, options=options)
        self._register = Register(index_id, signature.dim)

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
            (passage_id, self._encode(vector), words.get(passage_id, ""))
            for passage_id, vector in sorted(vectors.items())
        ]
        connection = self._connect()
        with atomic(connection):
            held = self._register.hold_any(connection)
            super().upsert(vectors, hashes=hashes, languages=languages)
            self._register.replace(connection, held, rows)

    def delete(self, ids: Collection[int]) -> None:
        """Forget vectors; unknown ids are fine."""
        connection = self._connect()
        with atomic(connection):
            held = self._register.hold_any(connection)
            super().delete(ids)
            self._register.remove(connection, held, ids)

    def drop(self) -> None:
        """Remove every vector of this signature, its files, and the tables made of it."""
        connection = self._connect()
        with atomic(connection):
            super().drop()
            for generation in self._register.hold_any(connection):
                self._register.end(connection, generation)
