"""What one search sees, and how it searches: every part by the way that suits it.

The rows of an owner are a block of the base. A large block has a graph, which proposes rows; the
scope is then applied to these, and when too few are left the block is scanned under the scope
instead. Small blocks, and the tail of rows newer than the base, are always scanned. All scores are
taken from the whole vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.columns.scope_rows import visible
from engine.columns.table import Ints, Snapshot
from engine.types import Candidate, Scope, Vector
from engine.vectors.base import Base, Words, owner_block, vault_block
from engine.vectors.centres import Centres
from engine.vectors.graph import Graph
from engine.vectors.scan import Probe, exact, promising
from engine.vectors.segment import Segment

SPARE: Final = 32
"""A graph is asked for three times the limit, and at least this many more."""
MANY_BLOCKS: Final = 32
"""Scopes of more owners than this scan the base as a whole."""
DRIFT: Final = 0.05
"""A mean that moved further since a graph was built makes that language's rows stale in it."""
NO_ROWS: Final = np.zeros(0, np.int64)
STALE_ROWS: Final = 20_000
"""More stale rows than this, and the graph is not used."""


@dataclass(frozen=True, slots=True)
class View:
    """The rows at one moment. ``centres`` is None for an index without centring.

    ``stale`` are rows, by block number, that the block's graph has in the wrong place.
    ``proposal`` is what one row proposed by a graph costs, in rows scanned.
    """

    base: Base
    tail: Segment
    words: Words
    centres: Centres | None
    stale: Mapping[int, Ints]
    next_serial: int
    proposal: int

    def search(self, query: Vector, scope: Scope, limit: int, language: str) -> list[Candidate]:
        """The best ``limit`` passages within the scope; ties by passage id.

        ``query`` has length one. With an empty ``language`` scores are plain cosines.
        """
        if limit <= 0:
            return []
        probe = Probe.of(
            query,
            language,
            centres=self.centres if language else None,
            shift=self.base.shift,
            languages=self.words.languages,
        )
        asked = _Search(self, query, language, scope, limit, probe)
        old = asked.base_rows()
        new = asked.scanned(self.tail, scope)
        scores = np.concatenate([exact(self.base.rows, old, probe), exact(self.tail, new, probe)])
        passages = np.concatenate([self.base.rows.scope.passage[old], self.tail.scope.passage[new]])
        order = np.lexsort((passages, -scores))[:limit]
        return [
            Candidate(int(passages[place]), rank, float(scores[place]))
            for rank, place in enumerate(order, start=1)
        ]


def stale_rows(
    base: Base, words: Words, centres: Centres | None, graph: Graph, block: slice
) -> Ints:
    """Rows of a block whose language has not the mean that its graph was built with."""
    codes = [
        code
        for word, code in words.languages.items()
        if centres is not None
        and graph.centres is not None
        and _moved(graph.centres.of(word), centres.of(word))
    ]
    if not codes:
        return np.zeros(0, np.int64)
    found: Ints = np.flatnonzero(np.isin(base.rows.language[block], codes)) + block.start
    return found


def _moved(before: Vector | None, now: Vector | None) -> bool:
    if before is None or now is None:
        return before is not now
    return float(np.linalg.norm(before - now)) > DRIFT


@dataclass(frozen=True, slots=True)
class _Search:
    view: View
    query: Vector
    language: str
    scope: Scope
    limit: int
    probe: Probe

    def base_rows(self) -> Ints:
        """Rows of the base that may be among the best."""
        found = [self._of_block(number, block) for number, block in self._blocks()]
        if self.scope.include_shared and self.scope.owners is not None:
            found.append(self._shared())
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def scanned(self, part: Segment, scope: Scope) -> Ints:
        """Rows of a part, numbered from its start, that may be among the best."""
        words = self.view.words
        rows = visible(Snapshot(part.scope, words.types, words.sessions), scope)
        return promising(part, rows, self.probe, self.limit)

    def _blocks(self) -> Iterator[tuple[int | None, slice]]:
        """The blocks to search; a number only where there may be a graph."""
        base, scope = self.view.base, self.scope
        numbers = [vault_block(vault) for vault in sorted(scope.vaults)]
        if scope.owners is not None:
            numbers += [owner_block(owner) for owner in sorted(scope.owners)]
        if len(numbers) > MANY_BLOCKS:
            yield None, slice(0, len(base.rows))
            return
        if scope.owners is None:
            yield None, slice(0, base.small_end)
            large = set(base.large_blocks())
            # A vault that is small lies among the rows above.
            numbers = [number for number in numbers if number in large]
            numbers += [number for number in large if number % 2 == 0]
        for number in numbers:
            yield number, base.block(number)

    def _of_block(self, number: int | None, block: slice) -> Ints:
        if number is not None and number in self.view.base.graphs:
            found = self._proposed(number, block)
            if found is not None:
                return found
        rows: Ints = self.scanned(self.view.base.rows.part(block), self.scope) + block.start
        return rows

    def _proposed(self, number: int, block: slice) -> Ints | None:
        """Rows by the graph; None when they must be scanned for."""
        is_plain = self.view.centres is not None and not self.language
        # A small part of a large block: nearly all that is proposed would go.
        if is_plain or self.scope.session is not None or self.scope.only is not None:
            return None
        stale = self.view.stale.get(number, NO_ROWS)
        if stale.size > STALE_ROWS:
            return None
        found = self._within_scope(self.view.base.graphs[number], block)
        if found is None or not stale.size:
            return found
        words = self.view.words
        snapshot = Snapshot(self.view.base.rows.scope, words.types, words.sessions)
        also = visible(snapshot, self.scope, among=stale)
        also = promising(self.view.base.rows, also, self.probe, self.limit)
        return np.concatenate([found, also])

    def _within_scope(self, graph: Graph, block: slice) -> Ints | None:
        base, words = self.view.base, self.view.words
        snapshot = Snapshot(base.rows.scope, words.types, words.sessions)
        cost, size = self.view.proposal, block.stop - block.start
        most = size // cost if cost else len(graph)
        count = min(len(graph), max(3 * self.limit, self.limit + SPARE))
        for _ in range(2):
            if count > most:
                return None
            serials, is_cut = graph.nearest(
                self.query, self.language, count=count, wanted=self.limit
            )
            if is_cut:
                return None
            rows = visible(snapshot, self.scope, among=base.rows_of(serials, block))
            if rows.size >= self.limit:
                return rows
            # As many more as the share of rows lost so far asks for, with some to spare.
            count = int(1.5 * count * self.limit / max(rows.size, 1))
            if not rows.size:
                return None
        return None

    def _shared(self) -> Ints:
        view = self.view
        snapshot = Snapshot(view.base.rows.scope, view.words.types, view.words.sessions)
        rows = visible(snapshot, self.scope, among=view.base.shared)
        return promising(view.base.rows, rows, self.probe, self.limit)
