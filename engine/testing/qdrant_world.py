"""A database with passages whose vectors are mirrored to the Qdrant double."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from engine.net.client import HttpClient
from engine.qdrant.guard import Guard
from engine.qdrant.mirror import Mirror, Mirrored
from engine.qdrant.place import place_of
from engine.qdrant.server import QdrantServer
from engine.qdrant.store import QdrantStore
from engine.testing.fake_qdrant import FakeQdrant, serving
from engine.testing.vector_world import SIGNATURE, InProcessWorld
from engine.types import Candidate, Passage, Scope, Signature, Vector

ALIAS: Final = "memories"


@dataclass(frozen=True, slots=True)
class Way:
    """How a world mirrors. ``follows``: before each search, so that nothing is scored here."""

    follows: bool = True
    quantization: str = "none"
    centred: bool = False
    means: Mapping[str, Vector] = field(default_factory=dict)


WAYS: Final = {
    "up to date": Way(),
    "behind": Way(follows=False),
    "int8": Way(quantization="int8"),
    "binary": Way(quantization="binary"),
}
"""Every way the contract is tested in, by name."""


class FollowedStore(QdrantStore):
    """A store whose mirror has always caught up."""

    mirror: Mirror

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        self.mirror.follow()
        return super().search(vector, scope=scope, limit=limit, language=language)


class QdrantWorld:
    """Passages in a database, points in the double; ``open`` builds the collection."""

    def __init__(
        self, database: InProcessWorld, qdrant: FakeQdrant, way: Way | None = None
    ) -> None:
        self.database = database
        self.qdrant = qdrant
        self.way = way or Way()
        self.http = HttpClient()
        self.server = self.connect()

    def connect(self, *, api_key: str = "", alias: str = ALIAS) -> QdrantServer:
        """A connection to the double."""
        return QdrantServer(place_of("127.0.0.1", self.qdrant.port, alias, api_key), self.http)

    def mirror(self, signature: Signature = SIGNATURE, index_id: int = 1) -> Mirror:
        """A mirror of one index."""
        way = self.way
        what = Mirrored(index_id, signature, way.quantization, way.centred, way.means)
        made = Mirror(self.database.connect, self.server, what)
        made.states.ensure()
        return made

    def open(self, signature: Signature = SIGNATURE, index_id: int = 1) -> QdrantStore:
        """A new instance, as another process would have it."""
        durable = self.database.open(signature, index_id)
        mirror = self.mirror(signature, index_id)
        make = FollowedStore if self.way.follows else QdrantStore
        store = make(durable, mirror, self.server, Guard(self.server.ping))
        if isinstance(store, FollowedStore):
            store.mirror = mirror
        store.ensure()
        if mirror.live() is None:
            mirror.build()
        return store

    def put(self, *passages: Passage) -> None:
        """Create or change passages."""
        self.database.put(*passages)

    def remove(self, *ids: int) -> None:
        """Remove passages."""
        self.database.remove(*ids)

    def close(self) -> None:
        """Close connections."""
        self.http.close()
        self.database.close()


@contextmanager
def world(database: InProcessWorld, way: Way | None = None) -> Iterator[QdrantWorld]:
    """A world over a double of its own."""
    with serving() as qdrant:
        made = QdrantWorld(database, qdrant, way)
        try:
            yield made
        finally:
            made.close()
