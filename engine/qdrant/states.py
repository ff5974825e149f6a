"""What the database knows of collections: which is live, which is being built, how far each is.

``memory_qdrant`` has one row for each collection that was made from this database. ``position`` is
the place in the change log it is up to, ``after_id`` the last passage that a build has copied.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from engine.database import atomic
from engine.protocols import Connect
from engine.types import Vector

LIVE: Final = "live"
BUILDING: Final = "building"

CREATE: Final = """
    CREATE TABLE IF NOT EXISTS memory_qdrant (
        place TEXT NOT NULL, collection TEXT NOT NULL, index_id BIGINT NOT NULL,
        state TEXT NOT NULL, quantization TEXT NOT NULL, position BIGINT NOT NULL,
        after_id BIGINT NOT NULL, means TEXT NOT NULL, UNIQUE (place, collection))"""
FIELDS: Final = "collection, index_id, state, quantization, position, after_id, means"
OF_PLACE: Final = f"SELECT {FIELDS} FROM memory_qdrant WHERE place = ? ORDER BY collection"
ADD: Final = f"""
    INSERT INTO memory_qdrant (place, {FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
MOVE: Final = "UPDATE memory_qdrant SET position = ? WHERE place = ? AND collection = ?"
COPIED: Final = "UPDATE memory_qdrant SET after_id = ? WHERE place = ? AND collection = ?"
PROMOTE: Final = "UPDATE memory_qdrant SET state = ? WHERE place = ? AND collection = ?"
FORGET: Final = "DELETE FROM memory_qdrant WHERE place = ? AND collection = ?"
FORGET_LIVE: Final = """
    DELETE FROM memory_qdrant WHERE place = ? AND state = ? AND collection <> ?"""
FORGET_ALL: Final = "DELETE FROM memory_qdrant"


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection. ``means`` are those that its vectors were centred with."""

    name: str
    index_id: int
    state: str
    quantization: str
    position: int
    after: int
    means: Mapping[str, Vector]


class States:
    """The rows of one place."""

    def __init__(self, connect: Connect, place: str) -> None:
        self._connect = connect
        self._place = place

    def ensure(self) -> None:
        """Create the table when absent."""
        self._connect().execute(CREATE)

    def all(self) -> list[Collection]:
        """Every collection of the place."""
        found = self._connect().execute(OF_PLACE, (self._place,)).fetchall()
        return [
            Collection(name, index_id, state, quantization, position, after, _unpacked(means))
            for name, index_id, state, quantization, position, after, means in found
        ]

    def find(self, index_id: int, state: str) -> Collection | None:
        """The collection of an index in a state."""
        return next((c for c in self.all() if (c.index_id, c.state) == (index_id, state)), None)

    def add(self, one: Collection) -> None:
        """Remember a collection that is about to be made."""
        values = (one.name, one.index_id, one.state, one.quantization, one.position, one.after)
        self._connect().execute(ADD, (self._place, *values, _packed(one.means)))

    def move(self, name: str, position: int) -> None:
        """Say how far in the log a collection is."""
        self._connect().execute(MOVE, (position, self._place, name))

    def copied(self, name: str, after: int) -> None:
        """Say up to which passage a build has copied."""
        self._connect().execute(COPIED, (after, self._place, name))

    def promote(self, name: str) -> list[str]:
        """Make a collection the live one; the names of those that were."""
        connection = self._connect()
        earlier = [one.name for one in self.all() if one.state == LIVE and one.name != name]
        with atomic(connection):
            connection.execute(PROMOTE, (LIVE, self._place, name))
            connection.execute(FORGET_LIVE, (self._place, LIVE, name))
        return earlier

    def forget(self, name: str) -> None:
        """Forget a collection."""
        self._connect().execute(FORGET, (self._place, name))

    def forget_all(self) -> None:
        """Forget the collections of every place."""
        self._connect().execute(FORGET_ALL)


def _packed(means: Mapping[str, Vector]) -> str:
    return json.dumps(
        {
            language: base64.b64encode(mean.astype("<f4").tobytes()).decode("ascii")
            for language, mean in sorted(means.items())
        }
    )


@lru_cache(maxsize=8)
def _unpacked(text: str) -> Mapping[str, Vector]:
    return {
        language: np.frombuffer(base64.b64decode(mean), "<f4")
        for language, mean in json.loads(text).items()
    }
