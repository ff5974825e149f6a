"""Brings the vectors of the database to Qdrant, and keeps them there.

``build`` makes a collection beside the live one and lets the alias name it when it is complete;
``follow`` applies what the change log tells since the last time. Both go on where they were
stopped: a position is only saved after the server has said that everything up to it is stored, and
applying something twice changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from engine.columns.change_log import bounds as log_bounds
from engine.database import dialect_of
from engine.protocols import Connect
from engine.qdrant import states
from engine.qdrant.centring import centred_rows
from engine.qdrant.errors import QdrantFailed
from engine.qdrant.rows import Kept, Row, VectorRows
from engine.qdrant.rows import nobody as nobody_kept
from engine.qdrant.server import EFFORT_BUILD, MARKER, QdrantServer
from engine.qdrant.states import BUILDING, LIVE, States
from engine.types import Signature, Vector
from engine.vectors.centres import Centres

BATCH: Final = 256
SPAN: Final = 5_000
"""Entries of the log between two savings of the position."""
STRAY_PAGE: Final = 1_000

Report = Callable[[int, int], None]
"""Takes what is done and what there is to do; raises ``Cancelled`` to stop."""


def nobody(_done: int, _total: int) -> None:
    """A report that nobody reads."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What is mirrored: a vector index, and how its points are kept.

    ``centred`` vectors are measured from the means of their languages, ``means`` those that came
    with the model. ``effort`` is what the server puts into a graph when it builds one. Vectors of
    the vaults that ``kept`` tells are not mirrored.
    """

    index_id: int
    signature: Signature
    quantization: str = "none"
    centred: bool = False
    means: Mapping[str, Vector] = field(default_factory=dict)
    effort: int = EFFORT_BUILD
    kept: Kept = nobody_kept

    def centres(self, collection: states.Collection) -> Centres:
        """The centres a collection was built with."""
        return Centres(collection.means, self.means if self.centred else {})


class Mirror:
    """The mirror of one vector index at one place. One at a time does its work."""

    def __init__(self, connect: Connect, server: QdrantServer, what: Mirrored) -> None:
        self._connect = connect
        self._server = server
        self.what = what
        self.rows = VectorRows(
            connect, index_id=what.index_id, dim=what.signature.dim, kept=what.kept
        )
        self.states = States(connect, server.place.key)

    def live(self) -> states.Collection | None:
        """The live collection of this index, whatever its state on the server."""
        return self.states.find(self.what.index_id, LIVE)

    def building(self) -> states.Collection | None:
        """The collection that is being built for this index."""
        return self.states.find(self.what.index_id, BUILDING)

    def behind(self, most: int) -> int:
        """Entries of the log that the live collection has not seen; ``most + 1`` for more."""
        live = self.live()
        return self.rows.behind(live.position, most) if live else most + 1

    def is_followable(self, collection: states.Collection) -> bool:
        """Whether the log still tells everything that a collection has not seen."""
        low, high = self.rows.bounds()
        return low - 1 <= collection.position <= high

    def needs_build(self) -> bool:
        """Whether there is no live collection as it is to be, or it cannot be followed.

        Raises ``QdrantFailed``.
        """
        live = self.live()
        if live is None or live.quantization != self.what.quantization:
            return True
        if not self.is_followable(live):
            return True
        try:
            marked = self._server.marked(live.name)
        except QdrantFailed as error:
            if error.code != "qdrant_missing":
                raise
            return True
        # A copy of the database that was restored knows less than the collection.
        return marked is None or marked > live.position

    def follow(self, report: Report = nobody) -> int:
        """Apply what changed since the last time to the live collection; how many passages.

        Nothing where there is none, or where the log does not tell it any more. Raises
        ``QdrantFailed``; what was applied until then stays applied.
        """
        live = self.live()
        if live is None or not self.is_followable(live):
            return 0
        count = self._catch_up(live, report)
        if count:
            moved = self.live()
            if moved is not None:
                self._server.mark(moved.name, moved.position, self.what.signature.dim)
        return count

    def build(self, report: Report = nobody) -> None:
        """Make the collection of this index anew, go on with one begun earlier, and switch to it.

        Raises ``QdrantFailed``, and whatever ``report`` raises; what was copied stays.
        """
        made = self._begun() or self._begin()
        if not self._server.exists(made.name):
            made = self._restart(made)
        done, left = 0, self.rows.count(after=made.after)
        for rows in self._pages(made):
            self._upsert(made, rows)
            self.states.copied(made.name, rows[-1].passage)
            done += len(rows)
            report(done, max(done, left))
        self._catch_up(made, nobody)
        self.remove_strays(made.name)
        self._go_live(made)

    def remove_strays(self, collection: str) -> int:
        """Delete points of passages that have no vector any more; how many."""
        count, first = 0, MARKER + 1
        while found := self._server.ids(collection, first, STRAY_PAGE):
            strays = set(found) - self.rows.ids(found[0], found[-1])
            self._server.delete(collection, sorted(strays))
            count += len(strays)
            first = found[-1] + 1
        return count

    def forget(self) -> None:
        """Let go of everything at this place, on the server too. Raises ``QdrantFailed``."""
        for one in self.states.all():
            self._server.drop(one.name)
            self.states.forget(one.name)

    def _begun(self) -> states.Collection | None:
        """The unfinished build that fits what is wanted; others are removed."""
        kept = None
        for one in self.states.all():
            if one.state != BUILDING:
                continue
            fits = (one.index_id, one.quantization) == (self.what.index_id, self.what.quantization)
            if fits and self.is_followable(one):
                kept = one
            else:
                self._server.drop(one.name)
                self.states.forget(one.name)
        return kept

    def _begin(self) -> states.Collection:
        made = self._new(self._free_name())
        self.states.add(made)
        self._create(made)
        return made

    def _restart(self, made: states.Collection) -> states.Collection:
        """A collection that was remembered but is not on the server, from its beginning."""
        self.states.forget(made.name)
        again = self._new(made.name)
        self.states.add(again)
        self._create(again)
        return again

    def _new(self, name: str) -> states.Collection:
        _low, high = log_bounds(self._connect())
        means = self.rows.means() if self.what.centred else {}
        what = self.what
        return states.Collection(name, what.index_id, BUILDING, what.quantization, high, -1, means)

    def _create(self, made: states.Collection) -> None:
        dim = self.what.signature.dim
        self._server.create(
            made.name, dim=dim, quantization=made.quantization, effort=self.what.effort
        )

    def _free_name(self) -> str:
        """``<alias>_<signature>_<n>``, with an n that is new to the server and to the database."""
        alias = self._server.place.alias
        names = set(self._server.names())
        if alias in names:
            message = "A collection has the name that is to be the alias: choose another one."
            raise QdrantFailed(message, code="qdrant_name_taken")
        names.update(one.name for one in self.states.all())
        digest = hashlib.sha256(str(self.what.signature).encode()).hexdigest()[:8]
        stem = f"{alias}_{digest}_"
        ends = (name[len(stem) :] for name in names if name.startswith(stem))
        return f"{stem}{1 + max((int(end) for end in ends if end.isdecimal()), default=0)}"

    def _pages(self, made: states.Collection) -> Iterator[list[Row]]:
        after = made.after
        while rows := self.rows.page(after, BATCH):
            yield rows
            after = rows[-1].passage

    def _upsert(self, collection: states.Collection, rows: Sequence[Row]) -> None:
        matrix = np.stack([row.vector for row in rows])
        languages = [row.language for row in rows]
        moved = centred_rows(self.what.centres(collection), matrix, languages)
        self._server.upsert(collection.name, rows, list(moved))

    def _catch_up(self, collection: states.Collection, report: Report) -> int:
        """Apply the log from a collection's position; how many passages were applied."""
        position, count = collection.position, 0
        _low, high = self.rows.bounds()
        span = SPAN if dialect_of(self._connect()).is_serial else high
        while True:
            until = min(high, position + span)
            changed = sorted(self.rows.changed(position, until))
            for start in range(0, len(changed), BATCH):
                self._apply(collection, changed[start : start + BATCH])
                report(count + min(start + BATCH, len(changed)), count + len(changed))
            count += len(changed)
            if until > position:
                self.states.move(collection.name, until)
            position = until
            if position >= high:
                return count

    def _apply(self, collection: states.Collection, passages: Collection[int]) -> None:
        rows = self.rows.read(passages)
        if rows:
            self._upsert(collection, rows)
        gone = set(passages) - {row.passage for row in rows}
        self._server.delete(collection.name, sorted(gone))

    def _go_live(self, made: states.Collection) -> None:
        current = next((one for one in self.states.all() if one.name == made.name), made)
        self._server.mark(made.name, current.position, self.what.signature.dim)
        self._server.switch(made.name)
        for earlier in self.states.promote(made.name):
            self._server.drop(earlier)
