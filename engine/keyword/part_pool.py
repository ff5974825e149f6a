"""The parts in memory: found, built, kept in step with the log, and let go when they are many.

Small parts are built within the search that first needs them. Large ones are built in a thread,
one at a time, and so is whatever else would keep a search waiting; until then there is no answer
from memory.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock, Thread

from engine.database import FAILURES, in_transaction
from engine.keyword.merging import merged
from engine.keyword.part import Limits, Part, State
from engine.keyword.part_files import PartFiles
from engine.keyword.parts import PartKey
from engine.keyword.reading import reading
from engine.keyword.stored_terms import Position, StoredTerms
from engine.protocols import Connect, DatabaseConnection

RETRY_S = 60.0

_log = logging.getLogger(__name__)


class PartPool:
    """Parts by key, the last used kept longest. Thread-safe."""

    def __init__(
        self,
        connect: Connect,
        source: StoredTerms,
        files: PartFiles | None,
        limits: Limits,
        release: Callable[[], None] | None,
    ) -> None:
        """``release`` is called at the end of each thread of the pool."""
        self._connect = connect
        self._source = source
        self._files = files
        self._limits = limits
        self._release = release
        self._lock = Lock()
        self._turn = Lock()
        self._parts: OrderedDict[PartKey, Part] = OrderedDict()
        self._threads: set[Thread] = set()

    def states(self, keys: Sequence[PartKey]) -> list[State] | None:
        """Every one of these parts as the log stands now; None when one is not to be had."""
        try:
            database = self._connect()
            with reading(database):
                position = self._source.position(database)
                found = [self._state(key, database, position) for key in keys]
        except FAILURES:
            return None
        states = [state for state in found if state is not None]
        return states if len(states) == len(found) else None

    def figures(self) -> dict[str, int]:
        """What is in memory now."""
        with self._lock:
            parts = list(self._parts.values())
        states = [part.state for part in parts if part.state is not None]
        return {
            "parts": len(states),
            "building": sum(part.is_busy for part in parts),
            "passages_in_memory": sum(state.rows for state in states),
            "bytes_in_memory": sum(state.nbytes for state in states),
        }

    def settle(self, timeout: float) -> bool:
        """Wait for the threads; whether they ended in time."""
        ends = time.monotonic() + timeout
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, ends - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _state(
        self, key: PartKey, database: DatabaseConnection, position: Position
    ) -> State | None:
        part = self._part(key)
        state = part.state
        if state is not None and self._is_current(part, database, state, position):
            return state
        # What a transaction has changed may never be committed: only its own connection, the
        # durable index over it that is, may see it.
        if in_transaction(database) or part.is_busy:
            return None
        if part.retry_at > time.monotonic():
            return None
        with part.lock:
            state = self._caught_up(part, database)
        self._trim(part)
        return state

    def _is_current(
        self, part: Part, database: DatabaseConnection, state: State, position: Position
    ) -> bool:
        return state.leads_to(position) and not part.changed(database, state, position).size

    def _caught_up(self, part: Part, database: DatabaseConnection) -> State | None:
        """A part as the log stands now, or None when a thread was started for it."""
        # Read again: another thread may have followed the log further while this one waited.
        position = self._source.position(database)
        state = part.state
        if part.is_busy:
            return None
        if state is None or not state.leads_to(position):
            if not part.restore(database, position):
                return self._loaded(part, database)
            state = part.state
        if state is None:
            return None
        changed = part.changed(database, state, position)
        if changed.size > self._limits.followed_at_once:
            self._start(part, partial(self._catch_up, part))
            return None
        if changed.size:
            state = part.follow(database, position, changed)
        if (begun := part.begin_merge()) is not None:
            self._spawn(lambda: self._merge(part, begun))
        return state

    def _loaded(self, part: Part, database: DatabaseConnection) -> State | None:
        at_once = self._limits.built_at_once
        if self._source.size(database, part.key, at_once + 1) > at_once:
            self._start(part, part.load)
            return None
        part.load(database)
        return part.state

    def _catch_up(self, part: Part, database: DatabaseConnection) -> None:
        position = self._source.position(database)
        with part.lock:
            state = part.state
            if state is not None and state.leads_to(position):
                part.follow(database, position, part.changed(database, state, position))
                return
        part.load(database)

    def _start(self, part: Part, work: Callable[[DatabaseConnection], None]) -> None:
        """Build a part in a thread; it cannot be searched until then."""
        part.is_busy = True

        def build() -> None:
            try:
                with self._turn:
                    work(self._connect())
            except Exception as error:  # a thread has nobody to raise to
                self._failed(part, error)
            finally:
                part.is_busy = False
            self._trim(part)

        self._spawn(build)

    def _merge(self, part: Part, begun: State) -> None:
        """Merge the segments of a part that goes on being searched."""
        try:
            with self._turn:
                whole = merged(begun.segments)
            with part.lock:
                part.end_merge(begun, whole)
            part.save(self._connect(), replace(begun, segments=(whole,)))
        except Exception as error:  # as above
            self._failed(part, error)
            with part.lock:
                part.cancel_merge()

    def _failed(self, part: Part, error: Exception) -> None:
        part.retry_at = time.monotonic() + RETRY_S
        _log.warning("The keyword index of %s was not built: %s", part.key, type(error).__name__)

    def _spawn(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            finally:
                if self._release is not None:
                    self._release()
                with self._lock:
                    self._threads.discard(thread)

        thread = Thread(target=run, name="keyword-parts", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def _part(self, key: PartKey) -> Part:
        with self._lock:
            part = self._parts.get(key)
            if part is None:
                part = self._parts[key] = Part(key, self._source, self._files, self._limits)
            self._parts.move_to_end(key)
            return part

    def _trim(self, used: Part) -> None:
        """Let go of the parts used longest ago, but never of the one that is being used."""
        with self._lock:
            held = {key: part.state.nbytes for key, part in self._parts.items() if part.state}
            total = sum(held.values())
            for key, size in held.items():
                if total <= self._limits.max_bytes:
                    return
                if key != used.key and not self._parts[key].is_busy:
                    del self._parts[key]
                    total -= size
