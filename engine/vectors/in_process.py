"""The in-process vector index: kept in the database, searched in memory and mapped files.

What is guaranteed. A search sees every change committed before it began, by this instance or any
other, because each search first follows the change log. Inside a transaction it also sees that
transaction's own changes; such changes are read again by every later search until one outside a
transaction has confirmed them, so a rollback leaves nothing behind. The connection's
``in_transaction`` tells which it is. The log may be pruned at any time: an index that missed a row
loads itself anew. Its newest row should be kept, which saves a reload.

On a server changes are committed in another order than they are written: the log tells those that
may not be complete again, and rows read twice do no harm.

Rows come into a tail in the order of the log. When it is long, a thread arranges everything into a
new base: a block for each owner, a graph for each large block, and files on disk where a folder is
given, so that the next start maps them instead of reading the database. Searches meanwhile use the
old state and stay exact.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from threading import Lock
from typing import Final

import numpy as np

from engine.columns import change_log
from engine.database import FAILURES, dialect_of, in_transaction
from engine.errors import EngineError, Unavailable
from engine.protocols import Connect, DatabaseConnection
from engine.types import Candidate, Health, Scope, Signature, Vector
from engine.vectors.arrange import is_outdated
from engine.vectors.files import IndexFiles
from engine.vectors.rebuild import Rebuilder
from engine.vectors.similarity import unit
from engine.vectors.state import Options, State
from engine.vectors.stored import StoredVectors
from engine.vectors.table import VectorTable
from engine.vectors.view import View

UNCONFIRMED: Final = 5000
"""Changes read again after a load inside a transaction, since any of them may be rolled back."""


DEFAULTS: Final = Options()


class InProcessIndex:
    """``VectorStore`` named ``in-process``. ``index_id`` numbers the signature in the table.

    Thread-safe; loads itself on the first search.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        signature: Signature,
        index_id: int,
        options: Options = DEFAULTS,
    ) -> None:
        self._connect = connect
        self._signature = signature
        self._options = options
        self._table = VectorTable(connect, index_id=index_id, dim=signature.dim)
        self._stored = StoredVectors(connect, index_id=index_id, dim=signature.dim)
        self._files = None
        if options.folder is not None:
            self._files = IndexFiles(options.folder, index_id=index_id, signature=str(signature))
        self._rebuilder = Rebuilder(options.tuning, self._files)
        self._lock = Lock()
        self._state: State | None = None
        self._is_purged = False
        """Whether graphs, and a base being made, may hold what was to be forgotten."""

    @property
    def name(self) -> str:
        return "in-process"

    @property
    def signature(self) -> Signature:
        return self._signature

    @property
    def is_loaded(self) -> bool:
        """Whether its rows are in memory, so that a search costs no loading."""
        return self._state is not None

    def ensure(self) -> None:
        """Create the tables when absent; all indexes share them."""
        self._table.ensure()

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
        if rows:
            self._table.store(rows)

    def delete(self, ids: Collection[int]) -> None:
        """Forget vectors; unknown ids are fine."""
        if ids:
            self._table.forget(ids)

    def drop(self) -> None:
        """Remove every vector of this signature, and its files."""
        self._rebuilder.stop()
        self._table.forget_all()
        if self._files is not None:
            # Should the transaction be rolled back: files can be made again.
            self._files.forget_all()

    def unnamed(self, limit: int = 1000) -> list[int]:
        """Passages whose vector was stored without a language."""
        return self._table.unnamed(limit)

    def name_languages(self, languages: Mapping[int, str]) -> None:
        """Give stored vectors their languages; they need not be embedded again for it."""
        if languages:
            self._table.name(languages)

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        """Nearest passages within the scope.

        The score is the cosine; in a centred index, and with the language of the query, the cosine
        between what is left of passage and query after the means of their languages.
        """
        query = unit(vector, self._signature.dim)
        try:
            view = self._view()
        except FAILURES as error:
            raise Unavailable(f"The index cannot be read ({type(error).__name__}).") from error
        return view.search(query, scope, limit, language)

    def hashes(self, ids: Collection[int]) -> Mapping[int, str]:
        """The text hashes that stored vectors came with."""
        return self._stored.hashes(ids)

    def count(self) -> int:
        """Vectors stored."""
        return self._table.count()

    def health(self) -> Health:
        """Whether a real search works now. Never raises."""
        probe = np.zeros(self._signature.dim, np.float32)
        probe[:1] = 1.0
        begun = time.perf_counter()
        try:
            self.search(probe, scope=Scope(now_ms=0, owners=None), limit=1)
        except EngineError as error:
            return Health(False, str(error), {"code": error.code})
        except Exception as error:  # the driver's own errors; a health check reports them all
            name = type(error).__name__
            fault = {"code": "unreadable", "error": name}
            return Health(False, f"The index cannot be read ({name}).", fault)
        took_ms = round((time.perf_counter() - begun) * 1000, 2)
        detail: dict[str, str | int | float | bool | None] = {
            "dim": self._signature.dim,
            "took_ms": took_ms,
        }
        state = self._state
        if state is not None:
            detail |= state.detail()
        detail["arranging"] = self._rebuilder.is_busy
        if self._rebuilder.failure:
            detail["failure"] = self._rebuilder.failure
        return Health(True, detail=detail)

    def settle(self, timeout_s: float = 60.0) -> bool:
        """Wait until everything is arranged that deserves it; whether it is (for measuring)."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            view = self._view()
            if not self._rebuilder.is_busy:
                return not self._is_due(view)
            self._rebuilder.wait(max(0.0, deadline - time.monotonic()))
        return False

    def forget(self) -> None:
        """Let go of everything in memory; the next search loads it again."""
        with self._lock:
            self._state = None

    def forget_files(self) -> None:
        """Remove the files, which hold vectors of passages that are no more. The next start reads
        the database, and makes them again."""
        if self._files is not None:
            with self._lock:
                self._files.forget_all()
                self._is_purged = True

    def _encode(self, vector: Vector) -> bytes:
        return unit(vector, self._signature.dim).astype("<f4").tobytes()

    def _view(self) -> View:
        connection = self._connect()
        with self._lock:
            return self._follow(connection)

    def _follow(self, connection: DatabaseConnection) -> View:
        """Bring the rows in memory up to the log."""
        low, high = change_log.bounds(connection)
        is_open = in_transaction(connection)
        state = self._state
        if state is None or high < state.seen or low > max(state.seen + 1, state.low):
            state = self._state = self._load(connection, low, high, is_open)
        state.low = low
        changed, told = state.unsettled, "" if is_open else change_log.snapshot(connection)
        if high != state.seen or not dialect_of(connection).is_serial:
            news = change_log.changed(connection, state.seen, high, told=state.told)
            changed = news | changed
        if changed:
            state.means(self._table.means(connection))
            state.apply(changed, self._table.read(connection, changed))
        if is_open:
            state.unsettled = changed
        else:
            state.seen, state.told, state.unsettled = high, told, set()
        if not (is_open or state.unsettled) and self._upkeep(connection, state):
            other = self._from_files(connection, low, high, newer_than=state.base.position)
            if other is not None:
                # Another process has arranged the same rows already.
                self._state = other
                return self._follow(connection)
            self._rebuilder.begin(state, anew=self._is_purged)
            self._is_purged = False
        return state.view()

    def _load(self, connection: DatabaseConnection, low: int, high: int, is_open: bool) -> State:
        state = self._from_files(connection, low, high)
        if state is not None:
            return state
        state = State(self._signature.dim, self._options, expected=self.count())
        state.means(self._table.means(connection))
        for records in self._table.read_all(connection):
            state.put(records)
        state.seen = high
        if is_open and dialect_of(connection).is_serial:
            state.seen = max(high - UNCONFIRMED, low - 1)
        return state

    def _from_files(
        self, connection: DatabaseConnection, low: int, high: int, newer_than: int = -1
    ) -> State | None:
        """The state that the files hold, when the log tells all that came after it."""
        named = self._table.files(connection) if self._files is not None else None
        if self._files is None or named is None:
            return None
        token, position = named
        if not low - 1 <= position <= high or position <= newer_than:
            return None
        found = self._files.read(token)
        if found is None:
            return None
        state = State(self._signature.dim, self._options)
        state.means(self._table.means(connection))
        state.rest_on(*found)
        state.seen = position
        return state

    def _upkeep(self, connection: DatabaseConnection, state: State) -> bool:
        """Take what the thread has made and name its files; whether it should begin again."""
        made = self._rebuilder.take()
        if made is not None and made.origin is state:
            state.adopt(made)
        if state.is_unnamed and self._files is not None:
            token = state.base.token
            if self._is_purged:
                self._files.forget_all()
                state.is_unnamed = False
            elif self._table.keep_files(connection, token, state.base.position):
                state.is_unnamed = False
                self._files.forget_others(token)
        return self._rebuilder.is_ready and self._is_due(state.view())

    def _is_due(self, view: View) -> bool:
        if self._options.tuning.is_loose(view.base, len(view.tail)):
            return True
        return any(
            is_outdated(rows, view.base.block(number)) for number, rows in view.stale.items()
        )
