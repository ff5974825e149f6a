"""One part in memory: built from the database or a file, then kept in step with the change log.

Searches use the state they took and hold no lock; whoever changes a part holds its lock and puts
a new state in place. The segments of a state are a large one and a few small ones behind it,
merged when they are many.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock

import numpy as np

from engine.columns.table import Ints
from engine.keyword.merging import merged
from engine.keyword.part_files import PartFile, PartFiles
from engine.keyword.parts import PartKey
from engine.keyword.segment import Segment
from engine.keyword.stored_terms import Position, StoredTerms, Words
from engine.protocols import DatabaseConnection

TAIL_SHARE = 8
MAX_TAIL = 20_000
DEAD_SHARE = 4
GROWTH = 4
"""Neighbouring small segments stay apart while one is this much larger than the next."""
LEAST_GROWN = 64
OVERHEAD = 20_000
"""Bytes of a part beside its arrays, roughly."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is done within a search, and what is left to a thread."""

    max_bytes: int = 2_000_000_000
    """Memory of all parts together."""
    built_at_once: int = 2000
    """Passages that a search builds a part of: about 40 ms."""
    followed_at_once: int = 10_000
    """Entries of the change log that a search follows."""
    merged_at_once: int = 5000
    """Passages of small segments that a search merges."""
    least_file: int = 2000
    """Parts of fewer passages are built faster than a file of them is worth."""
    refiled_after_s: float = 60.0
    """How long the terms of a deleted or changed passage may stay in a file that is in use, for
    every 100,000 passages in it."""


@dataclass(frozen=True, slots=True)
class State:
    """A part at one place of the change log. ``settled`` segments are being merged elsewhere."""

    segments: tuple[Segment, ...]
    words: Words
    seen: int
    build: str
    settled: int = 0

    @property
    def rows(self) -> int:
        return sum(map(len, self.segments))

    @property
    def has_dead(self) -> bool:
        """Whether passages of the large segment were changed or deleted since it was made."""
        return bool(self.segments) and self.segments[0].dead > 0

    @property
    def nbytes(self) -> int:
        return OVERHEAD + sum(segment.nbytes for segment in self.segments)

    def leads_to(self, position: Position) -> bool:
        """Whether the log still has every entry since."""
        return self.build == position.build and position.low - 1 <= self.seen <= position.high

    def needs_merge(self, at_once: int) -> bool:
        """Whether the small segments, or the dead rows, have become many."""
        if not self.segments:
            return False
        base = len(self.segments[0])
        dead = sum(segment.dead for segment in self.segments)
        limit = max(at_once, min(base // TAIL_SHARE, MAX_TAIL))
        return self.rows - base > limit or dead > max(at_once, self.rows // DEAD_SHARE)


class Part:
    """A part of the index in memory. ``lock`` is held by whoever changes it."""

    def __init__(
        self, key: PartKey, source: StoredTerms, files: PartFiles | None, limits: Limits
    ) -> None:
        self.key = key
        self.lock = Lock()
        self.state: State | None = None
        self.is_busy = False
        """Whether a thread is building it: until then it cannot be searched."""
        self.retry_at = 0.0
        """Not built again before this time, after a failure (monotonic seconds)."""
        self._source = source
        self._files = files
        self._limits = limits
        self._filed_at = time.monotonic()

    def restore(self, database: DatabaseConnection, position: Position) -> bool:
        """Take the part from its file; whether there was one that the log leads on from."""
        kept = self._files.read(self.key) if self._files is not None else None
        if kept is None or kept.weights != self._source.weights:
            return False
        state = State((kept.segment,), kept.words, kept.seen, kept.build)
        if not state.leads_to(position):
            return False
        if self._source.entry(database, kept.mark.place) != kept.mark.entry:
            return False
        self.state = state
        return True

    def load(self, database: DatabaseConnection) -> None:
        """Build the part from the database."""
        position = self._source.position(database)
        words = Words({}, {})
        segments = list(self._source.segments(database, self.key, words))
        whole = (merged(segments),) if segments else ()
        self.state = State(whole, words, position.high, position.build)
        if self.save(database, self.state):
            # The mapped file instead: processes share its memory.
            self.restore(database, position)

    def changed(self, database: DatabaseConnection, state: State, position: Position) -> Ints:
        """Passages that changed since a state that leads to a position."""
        return self._source.changed(database, state.seen, position)

    def follow(self, database: DatabaseConnection, position: Position, changed: Ints) -> State:
        """Take in what changed up to a place. The part must lead to it."""
        state = self.state
        if state is None:
            raise ValueError("a part is loaded before it follows the log")
        segments = [segment.without(segment.find(changed)) for segment in state.segments]
        added = self._source.segment(database, self.key, changed, state.words)
        if len(added):
            segments.append(added)
        fixed = segments[: state.settled]
        tidy = (*fixed, *self._tidied(segments[state.settled :]))
        self.state = State(tidy, state.words, position.high, state.build, state.settled)
        return self.state

    def begin_merge(self) -> State | None:
        """Have the segments of now merged by the caller; None when that is under way or vain."""
        state = self.state
        if state is None or state.settled:
            return None
        if not (state.needs_merge(self._limits.merged_at_once) or self._is_outdated(state)):
            return None
        self.state = State(
            state.segments, state.words, state.seen, state.build, len(state.segments)
        )
        return self.state

    def end_merge(self, begun: State, whole: Segment) -> None:
        """Put the merged segment in place of those it was made of."""
        state = self.state
        if state is None or state.words is not begun.words:
            return
        pairs = zip(begun.segments, state.segments, strict=False)
        died = [
            before.table.passage[before.table.alive & ~after.table.alive] for before, after in pairs
        ]
        whole = whole.without(whole.find(np.concatenate(died)))
        segments = (whole, *state.segments[begun.settled :])
        self.state = State(segments, state.words, state.seen, state.build)

    def _is_outdated(self, state: State) -> bool:
        """Whether a file has held what is no longer so for long enough."""
        if self._files is None or state.rows < self._limits.least_file or not state.has_dead:
            return False
        age = time.monotonic() - self._filed_at
        return age >= self._limits.refiled_after_s * max(1.0, state.rows / 100_000)

    def cancel_merge(self) -> None:
        """Forget that a merge was begun."""
        state = self.state
        if state is not None:
            self.state = State(state.segments, state.words, state.seen, state.build)

    def save(self, database: DatabaseConnection, state: State) -> bool:
        """Put a state of one segment away as a file, when it is worth one; whether it was."""
        if self._files is None or len(state.segments) != 1 or state.rows < self._limits.least_file:
            return False
        mark = self._source.mark(database)
        if mark is None:
            return False
        kept = PartFile(
            state.build,
            self._source.weights,
            state.seen,
            mark,
            state.segments[0],
            state.words,
        )
        self._filed_at = time.monotonic()
        try:
            self._files.write(self.key, kept)
        except OSError:
            # A full or read-only disk: the next start builds the part again.
            return False
        return True

    def _tidied(self, segments: list[Segment]) -> list[Segment]:
        """Merge small neighbours, and leave out what is dead."""
        kept = [segment for segment in segments if segment.live]
        while len(kept) > 1:
            before, last = len(kept[-2]), len(kept[-1])
            if before > max(LEAST_GROWN, GROWTH * last):
                break
            if before + last > self._limits.merged_at_once:
                break
            kept[-2:] = [merged(kept[-2:])]
        return kept
