"""One segment of several, without the dead rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.columns.table import Ints, Table
from engine.keyword.segment import Rows, Segment, Weights, by_passage, summed
from engine.keyword.vocabulary import Vocabulary

BLOCK = 4_000_000
"""Postings moved at a time: bounds the memory of the work."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A segment to merge: the new numbers of its terms, and the live postings of each."""

    segment: Segment
    numbers: Ints
    counts: Ints


def merged(segments: Sequence[Segment]) -> Segment:
    """The live rows of all segments, in their order."""
    words, sources = _united(segments)
    totals = np.zeros(len(words), np.int64)
    for source in sources:
        totals[source.numbers] += source.counts
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(totals, out=starts[1:])
    rows: Rows = np.empty(int(starts[-1]), np.int32)
    weights: Weights = np.empty(int(starts[-1]), np.uint16)
    free, offset = starts[:-1].copy(), 0
    for source in sources:
        for targets, found, weight in _moved(source, free, offset):
            rows[targets], weights[targets] = found, weight
        free[source.numbers] += source.counts
        offset += source.segment.live
    # Words of dead passages only must not stay: somebody may have wanted them forgotten.
    used = totals > 0
    table = _joined(segments)
    lengths = np.concatenate([part.lengths[part.table.alive] for part in segments])
    return Segment(
        table=table,
        lengths=lengths,
        terms=Vocabulary.of([word for word, kept in zip(words, used, strict=True) if kept]),
        starts=np.concatenate((starts[:1], starts[1:][used])),
        rows=rows,
        weights=weights,
        order=by_passage(table),
        total=summed(lengths),
    )


def _united(segments: Sequence[Segment]) -> tuple[list[bytes], list[_Source]]:
    """All words, sorted, and the segments with the numbers of theirs among them."""
    held = [segment.terms.words() for segment in segments]
    words = held[0] if len(held) == 1 else sorted(set().union(*held))
    number = dict(zip(words, range(len(words)), strict=True))
    return words, [
        _Source(
            segment,
            np.fromiter(map(number.__getitem__, theirs), np.int64, len(theirs)),
            _live_counts(segment),
        )
        for segment, theirs in zip(segments, held, strict=True)
    ]


def _live_counts(segment: Segment) -> Ints:
    if not segment.dead:
        return np.diff(segment.starts)
    before = np.zeros(segment.rows.size + 1, np.int64)
    np.cumsum(segment.table.alive[segment.rows], out=before[1:])
    return np.diff(before[segment.starts])


def _moved(source: _Source, free: Ints, offset: int) -> Iterator[tuple[Ints, Ints, Weights]]:
    """Where live postings go, their new rows, and their weights; some terms at a time."""
    segment, alive = source.segment, source.segment.table.alive
    new_row = np.cumsum(alive) - 1 + offset
    first = 0
    while first < len(segment.terms):
        edge = int(segment.starts[first]) + BLOCK
        last = max(first + 1, int(np.searchsorted(segment.starts, edge, side="right")) - 1)
        part = slice(int(segment.starts[first]), int(segment.starts[last]))
        rows, weights = segment.rows[part], segment.weights[part]
        if segment.dead:
            kept = alive[rows]
            rows, weights = rows[kept], weights[kept]
        counts = source.counts[first:last]
        begins = np.cumsum(counts) - counts
        shift = free[source.numbers[first:last]] - begins
        yield np.repeat(shift, counts) + np.arange(rows.size), new_row[rows], weights
        first = last


def _joined(segments: Sequence[Segment]) -> Table:
    """The live rows of the tables, one after another."""
    parts = [segment.table.part(np.flatnonzero(segment.table.alive)) for segment in segments]
    return Table(
        passage=np.concatenate([part.passage for part in parts]),
        owner=np.concatenate([part.owner for part in parts]),
        vault=np.concatenate([part.vault for part in parts]),
        retained=np.concatenate([part.retained for part in parts]),
        expires=np.concatenate([part.expires for part in parts]),
        flags=np.concatenate([part.flags for part in parts]),
        type=np.concatenate([part.type for part in parts]),
        session=np.concatenate([part.session for part in parts]),
        alive=np.concatenate([part.alive for part in parts]),
    )
