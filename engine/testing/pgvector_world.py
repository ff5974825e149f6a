"""A Postgres with passages, for tests of pgvector."""

from __future__ import annotations

from typing import Final

from engine.testing.vector_world import SIGNATURE, PostgresPassages
from engine.types import Signature
from engine.vectors.pgvector import PgVectorStore
from engine.vectors.pgvector_options import PgVectorOptions

WORLDS: Final[dict[str, PgVectorOptions]] = {
    "by scans": PgVectorOptions(),
    "by a graph": PgVectorOptions(least=0),
    "by a graph over bits": PgVectorOptions(least=0, quantization="binary"),
    "centred": PgVectorOptions(centred=True),
}
"""Every way an index of pgvector is kept, by name."""


class PgVectorWorld(PostgresPassages):
    """A database of a server; ``open`` also makes the graph where one is wanted."""

    def __init__(self, url: str, options: PgVectorOptions, *, again: bool = False) -> None:
        """``again``: the tables stay, as long as every test means the same index by a number."""
        super().__init__(url, ("memory_pgvector", "memory_pgvector_mean") if again else ())
        self.options = options

    def open(self, signature: Signature = SIGNATURE, index_id: int = 1) -> PgVectorStore:
        """A new instance, as another process would have it."""
        store = PgVectorStore(
            self.connect, signature=signature, index_id=index_id, options=self.options
        )
        store.ensure()
        store.maintain()
        return store
