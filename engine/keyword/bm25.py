"""The best passages by BM25 over segments, exactly, without reading what cannot matter.

The formula is FTS5's: idf of term t is ``ln((N - df + 0.5) / (df + 0.5))``, at least 1e-6; a
passage of length D scores ``sum idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * D / average))``.

Rare terms come first. Once the passages found cannot be beaten by one that holds only the terms
left (MaxScore, Turtle and Flood 1995), those terms are looked up for the passages found alone:
so the long postings of common words are hardly ever read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.columns.scope_rows import visible
from engine.columns.table import Ints, Snapshot
from engine.keyword.segment import Lengths, Rows, Segment, Weights
from engine.types import Candidate, Scope

LEAST_IDF = 1e-6
ROUNDING = 1e-4
"""Relative; more than float32 sums can be off."""
LOOK_BACK = 4
"""Reading a posting costs about as much as this share of looking at one passage found."""
SKIP_ROWS = 8
LOOK_AGAIN = 8
"""After a look that did not pay, so many times as many postings are read before the next."""
BATCH = 8192


@dataclass(frozen=True, slots=True)
class Formula:
    """``k1`` saturates repetition, ``b`` discounts long passages; ``padding`` terms are added to
    the length of each."""

    k1: float = 1.2
    b: float = 0.75
    padding: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term of a query in UTF-8; with ``is_prefix`` whatever begins with it."""

    term: bytes
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Shard:
    """A segment with the words of its codes."""

    segment: Segment
    types: dict[str, int]
    sessions: dict[str, int]

    def within(self, scope: Scope, rows: Ints) -> Ints:
        """Those rows that a scope may see."""
        return visible(Snapshot(self.segment.table, self.types, self.sessions), scope, rows)


@dataclass(frozen=True, slots=True)
class _Term:
    """What a term is worth, and its postings in each shard."""

    idf: float
    size: int
    postings: list[tuple[Rows, Weights]]


def best(
    shards: Sequence[Shard], wanted: Sequence[Wanted], scope: Scope, limit: int, formula: Formula
) -> list[Candidate]:
    """The best ``limit`` passages of the scope, best first, ties by passage id.

    A passage is in one shard only. Document frequencies and the average length are those of the
    live rows of the shards, whether or not the scope sees them.
    """
    if limit < 1 or not shards:
        return []
    search = _Search(shards, scope, limit, formula)
    search.run(search.terms(wanted))
    return search.found()


def scored(
    shards: Sequence[Shard],
    wanted: Sequence[Wanted],
    scope: Scope,
    passages: Sequence[int],
    formula: Formula,
) -> list[Candidate]:
    """Those of some passages that the scope sees, as ``best`` would order and score them."""
    if not passages or not shards:
        return []
    search = _Search(shards, scope, len(passages), formula)
    search.look_at(np.array(passages, np.int64))
    search.run(search.terms(wanted))
    return search.found()


class _Search:
    """One search: a score for each row of each shard, and the rows that may still win."""

    def __init__(self, shards: Sequence[Shard], scope: Scope, limit: int, formula: Formula) -> None:
        self._shards = shards
        self._scope = scope
        self._limit = limit
        self._k1 = formula.k1
        self._most = np.float32(formula.k1 + 1)
        count = sum(shard.segment.live for shard in shards)
        length = sum(shard.segment.total for shard in shards)
        average = max(length + count * formula.padding, 1.0) / max(count, 1)
        self._passages = count
        # The divisor of a row is tf + base + slope * length.
        slope = formula.k1 * formula.b / average
        self._base = np.float32(formula.k1 * (1 - formula.b) + slope * formula.padding)
        self._slope = np.float32(slope)
        self._scores = [np.zeros(len(shard.segment), np.float32) for shard in shards]
        self._rows = sum(scores.size for scores in self._scores)
        self._left: list[Ints] | None = None
        self._last = 0.0

    def terms(self, wanted: Sequence[Wanted]) -> list[_Term]:
        """Those terms that some passage holds, dearest first."""
        found = [term for term in map(self._term, wanted) if term is not None]
        return sorted(found, key=lambda term: -term.idf)

    def _term(self, wanted: Wanted) -> _Term | None:
        postings: list[tuple[Rows, Weights]] = []
        frequency, size = 0, 0
        for shard in self._shards:
            held, count = _postings(shard.segment, wanted)
            postings.append(held)
            frequency += count
            size += held[0].size
        if not frequency:
            return None
        idf = math.log((self._passages - frequency + 0.5) / (frequency + 0.5))
        return _Term(idf if idf > 0 else LEAST_IDF, size, postings)

    def look_at(self, passages: Ints) -> None:
        """Keep to these passages."""
        self._left = [
            shard.within(self._scope, np.sort(shard.segment.find(passages)))
            for shard in self._shards
        ]

    def run(self, terms: Sequence[_Term]) -> None:
        """Add up the scores."""
        unread = sum(term.size for term in terms)
        ceiling = sum(term.idf for term in terms) * (self._k1 + 1)
        read, look_again = 0, 1
        for batch in _batches(terms):
            if self._left is None and read >= look_again:
                look_again = read * LOOK_AGAIN
                if unread > read * LOOK_BACK + self._rows // SKIP_ROWS:
                    self._narrow(ceiling)
            if self._left is None:
                self._add(batch)
            else:
                for term in batch:
                    self._look_up(term)
            size = sum(term.size for term in batch)
            read, unread = read + size, unread - size
            ceiling -= sum(term.idf for term in batch) * (self._k1 + 1)

    def found(self) -> list[Candidate]:
        """The best rows so far, in order."""
        rows = self._left if self._left is not None else self._touched(self._last)
        scores = self._scores_of(rows)
        ids = np.concatenate(
            [
                shard.segment.table.passage[part]
                for shard, part in zip(self._shards, rows, strict=True)
            ]
        )
        if scores.size > self._limit:
            # Equal scores at the last place are all kept: the ids decide.
            kept = scores >= _last_of(scores, self._limit)
            scores, ids = scores[kept], ids[kept]
        order = np.lexsort((ids, -scores))[: self._limit]
        return [
            Candidate(int(ids[place]), rank, float(scores[place]))
            for rank, place in enumerate(order, 1)
        ]

    def _touched(self, least: float) -> list[Ints]:
        """Rows that hold some term, score that much so far, and are seen by the scope."""
        return [
            # numpy finds what is true four times as fast as what is not zero.
            shard.within(self._scope, np.flatnonzero(scores >= least if least else scores > 0))
            for shard, scores in zip(self._shards, self._scores, strict=True)
        ]

    def _scores_of(self, rows: Sequence[Ints]) -> Lengths:
        return np.concatenate(
            [scores[part] for scores, part in zip(self._scores, rows, strict=True)]
        )

    def _narrow(self, ceiling: float) -> None:
        """Keep the rows that can still win, when no other can.

        ``ceiling`` is more than the terms left can give a row. Rows below the last place of now
        are no candidates at the end, when every score is at least what it is now.
        """
        rows = self._touched(self._last)
        scores = self._scores_of(rows)
        if scores.size < self._limit:
            return
        self._last = _last_of(scores, self._limit)
        least = self._last * (1 - ROUNDING) - ceiling * (1 + ROUNDING)
        if least > 0:
            self._left = self._touched(least)

    def _add(self, batch: Sequence[_Term]) -> None:
        for place, scores in enumerate(self._scores):
            held = [(*term.postings[place], term.idf) for term in batch]
            held = [one for one in held if one[0].size]
            if not held:
                continue
            # Together, since short postings cost more by the call than by the posting.
            at = np.concatenate([rows for rows, _, _ in held], dtype=np.intp)
            weights = np.concatenate([weights for _, weights, _ in held])
            most = np.array([idf for _, _, idf in held], np.float32) * self._most
            sizes = [rows.size for rows, _, _ in held]
            np.add.at(scores, at, self._gain(np.repeat(most, sizes), place, at, weights))

    def _look_up(self, term: _Term) -> None:
        for place, (rows, weights) in enumerate(term.postings):
            left = (self._left or [])[place]
            if not rows.size or not left.size:
                continue
            # Of the same type: otherwise the long array would be converted, not the short one.
            at = np.minimum(np.searchsorted(rows, left.astype(rows.dtype)), rows.size - 1)
            holds = rows[at] == left
            held, at = left[holds], at[holds]
            self._scores[place][held] += self._gain(
                np.float32(term.idf) * self._most, place, held, weights[at]
            )

    def _gain(
        self, most: np.float32 | Lengths, place: int, rows: Ints, weights: Weights
    ) -> Lengths:
        """What terms add to rows that hold them; ``most`` is idf * (k1 + 1)."""
        counts = weights.astype(np.float32)
        divisor = self._shards[place].segment.lengths.take(rows)
        divisor *= self._slope
        divisor += self._base
        divisor += counts
        counts *= most
        counts /= divisor
        return counts


def _batches(terms: Sequence[_Term]) -> Iterator[list[_Term]]:
    """Terms in their order, short ones together."""
    batch: list[_Term] = []
    size = 0
    for term in terms:
        if batch and size + term.size > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(term)
        size += term.size
    if batch:
        yield batch


def _last_of(scores: Lengths, limit: int) -> float:
    """The score at the last place of a list of that length."""
    return float(np.partition(scores, scores.size - limit)[scores.size - limit])


def _postings(segment: Segment, wanted: Wanted) -> tuple[tuple[Rows, Weights], int]:
    """Postings of a term in a segment, and how many are alive."""
    if wanted.is_prefix:
        held = segment.postings_of(segment.terms.beginning_with(wanted.term))
        return held, int(np.count_nonzero(segment.table.alive[held[0]]))
    number = segment.terms.find(wanted.term)
    if number < 0:
        return (segment.rows[:0], segment.weights[:0]), 0
    return segment.postings(number), segment.frequency(number)
