"""What an in-process index holds in memory: a base, a tail, the words and means they go by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from engine.columns.table import Ints, Table, decode
from engine.types import Matrix, Vector
from engine.vectors.arrange import Tuning
from engine.vectors.base import Base, Words, base_of
from engine.vectors.centres import Centres
from engine.vectors.segment import Codes, Doubles, Segment, Tail, blank, coarsen, middle, spreads
from engine.vectors.table import Record
from engine.vectors.view import View, stale_rows


@dataclass(frozen=True, slots=True)
class Options:
    """How an index is kept.

    ``folder``: where its files go; None keeps everything in memory, and every start reads the
    database. ``centred``: scores are taken from the means of languages, where the query has one.
    ``means``: packaged means by language, for languages with few vectors.
    """

    folder: Path | None = None
    centred: bool = False
    means: Mapping[str, Vector] = field(default_factory=dict)
    tuning: Tuning = field(default_factory=Tuning)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A new base, and what it was made from."""

    base: Base
    origin: State
    centres: Centres | None
    tail_size: int


class State:
    """The rows of an index. Calls come under the lock of the index; a view needs none.

    ``seen`` is the place in the change log the rows are up to, ``told`` the snapshot of what was
    read beyond it, ``low`` where the log began when it was last read, ``unsettled`` what was read
    inside an open transaction, ``touched`` what changed since the thread took its view.
    ``is_unnamed`` tells that the base's files are not yet named in the database.
    """

    def __init__(self, dim: int, options: Options, *, expected: int = 0) -> None:
        self._options = options
        self._dim = dim
        self.base = base_of(
            blank(0, dim), np.zeros(dim, np.float32), large=options.tuning.large, next_serial=0
        )
        self.words = Words()
        self.seen = 0
        self.low = 0
        self.told = ""
        self.unsettled: set[int] = set()
        self.touched: set[int] = set()
        self.is_unnamed = False
        self._tail = Tail(dim, expected=expected)
        self._next_serial = 0
        self._centres = Centres({}, options.means) if options.centred else None
        self._counts: dict[str, int] = {}
        self._stale: Mapping[int, Ints] = {}
        self._view: View | None = None

    def view(self) -> View:
        """The rows as they are now."""
        if self._view is None:
            self._view = View(
                base=self.base,
                tail=self._tail.rows(),
                words=self.words,
                centres=self._centres,
                stale=self._stale,
                next_serial=self._next_serial,
                proposal=self._options.tuning.proposal,
            )
        return self._view

    def means(self, found: Mapping[str, tuple[int, Vector]]) -> None:
        """Take the means in use; where they are others than before, measure the rows anew."""
        counts = {language: count for language, (count, _) in found.items()}
        if not self._options.centred or counts == self._counts:
            return
        self._counts = counts
        stored = {language: mean for language, (_, mean) in found.items()}
        self._centres = Centres(stored, self._options.means)
        self._tail.respread(self.base.shift, self._means())
        self._rest(self.base)

    def apply(self, changed: Collection[int], pages: Iterable[Sequence[Record]]) -> None:
        """Take passages out, and those of them in again that ``pages`` holds."""
        self.base = self.base.without(self.base.find(changed))
        self._tail.remove(changed)
        self.touched.update(changed)
        self._view = None
        for records in pages:
            self.put(records)

    def put(self, records: Sequence[Record]) -> None:
        """Append rows to the tail; older rows of the same passages must be dead."""
        if not records:
            return
        words = self.words
        codes = [words.languages.setdefault(record[11], len(words.languages)) for record in records]
        vectors = np.frombuffer(b"".join(record[10] for record in records), "<f4")
        matrix: Matrix = vectors.reshape(-1, self._dim).astype(np.float32, copy=False)
        if not len(self.base.rows) and not len(self._tail):
            self.base = replace(self.base, shift=middle(matrix))
        serial = np.arange(self._next_serial, self._next_serial + len(records))
        scope = decode(records, words.types, words.sessions)
        self._tail.put(self._segment(scope, serial, np.array(codes, np.int16), matrix))
        self._next_serial += len(records)
        self._view = None

    def rest_on(self, base: Base, words: Words) -> None:
        """Begin with a base out of files."""
        self.words = words
        self._next_serial = base.next_serial
        self._rest(base)

    def adopt(self, made: Rebuilt) -> None:
        """Go over to a new base; what changed while it was made stays in the tail."""
        tail = self._tail.rows()
        late = np.arange(made.tail_size, len(tail))
        kept = tail.part(late[tail.scope.alive[late]])
        base = made.base.without(made.base.find(self.touched))
        self._rest(base, is_measured=made.centres is self._centres)
        self.touched = set()
        self.is_unnamed = bool(base.token)
        self._tail = Tail(self._dim)
        self._tail.put(self._segment(kept.scope, kept.serial, kept.language, kept.matrix))

    def detail(self) -> dict[str, int]:
        """Figures for the health of the index."""
        view = self.view()
        base = view.base
        return {
            "rows": len(base.rows) - base.dead + int(np.count_nonzero(view.tail.scope.alive)),
            "tail": len(view.tail),
            "graphs": len(base.graphs),
            "bytes": base.rows.nbytes + view.tail.nbytes,
            "graph_bytes": sum(graph.nbytes for graph in base.graphs.values()),
        }

    def _rest(self, base: Base, *, is_measured: bool = False) -> None:
        if self._centres is not None and not is_measured:
            spread = spreads(base.rows, base.shift, self._means())
            base = replace(base, rows=replace(base.rows, spread=spread))
        self.base = base
        self._stale = {
            number: rows
            for number, graph in base.graphs.items()
            if (rows := stale_rows(base, self.words, self._centres, graph, base.block(number))).size
        }
        self._view = None

    def _means(self) -> Doubles:
        centres = self._centres or Centres()
        return centres.table(self.words.languages, self._dim)

    def _segment(self, scope: Table, serial: Ints, language: Codes, matrix: Matrix) -> Segment:
        coarse = np.empty(matrix.shape, np.int8)
        step = np.empty(len(matrix), np.float32)
        coarsen(matrix, self.base.shift, coarse, step)
        spread = np.ones(len(matrix), np.float32)
        made = Segment(scope, serial, language, matrix, coarse, step, spread)
        if self._centres is None:
            return made
        return replace(made, spread=spreads(made, self.base.shift, self._means()))
