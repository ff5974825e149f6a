"""A segment from the terms that FTS5's own table keeps: nothing is tokenized again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count

import numpy as np

from engine.columns.table import Ints, Table
from engine.keyword.segment import MAX_WEIGHT, Lengths, Segment, by_passage, summed
from engine.keyword.vocabulary import Vocabulary

FieldWeights = tuple[int, int, int]
"""Of title, body and metadata."""

Fields = Sequence[tuple[bytes, bytes, bytes]]
"""Terms of title, body and metadata of passages, joined by spaces, UTF-8."""


def segment_of(table: Table, fields: Fields, weights: FieldWeights) -> Segment:
    """A segment of the rows of ``table``, whose terms are ``fields``."""
    size = len(table)
    numbers: defaultdict[bytes, int] = defaultdict(count().__next__)
    lengths: Lengths = np.zeros(size, np.float32)
    keys: list[Ints] = []
    for place, texts in enumerate(zip(*fields, strict=True)):
        # FTS5's tokenizer takes ASCII letters as lower case and splits at spaces.
        cut = [text.lower().split() for text in texts]
        counts = np.fromiter(map(len, cut), np.int64, size)
        found = map(numbers.__getitem__, chain.from_iterable(cut))
        terms = np.fromiter(found, np.int64, int(counts.sum()))
        keys.append(_key(terms, np.repeat(np.arange(size), counts), size, place))
        lengths += counts
    words = list(numbers)
    order = sorted(range(len(words)), key=words.__getitem__)
    rank = np.zeros(len(words), np.int64)
    rank[order] = np.arange(len(words))
    term, row, weight = _summed(np.concatenate(keys or [_NOTHING]), size, rank, weights)
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.bincount(term, minlength=len(words)), out=starts[1:])
    return Segment(
        table=table,
        lengths=lengths,
        terms=Vocabulary.of([words[number] for number in order]),
        starts=starts,
        rows=row.astype(np.int32),
        weights=weight.astype(np.uint16),
        order=by_passage(table),
        total=summed(lengths),
    )


_NOTHING: Ints = np.zeros(0, np.int64)
_FIELD_BITS = 2


def _key(terms: Ints, rows: Ints, size: int, place: int) -> Ints:
    """One number for term, row and field: sorting them is sorting by term, then row."""
    return ((terms * size + rows) << _FIELD_BITS) + place


def _summed(keys: Ints, size: int, rank: Ints, weights: FieldWeights) -> tuple[Ints, Ints, Ints]:
    """Term, row and summed weight of each pair of the two, in order of sorted terms and rows."""
    if not keys.size:
        return _NOTHING, _NOTHING, _NOTHING
    places = keys & (1 << _FIELD_BITS) - 1
    terms, rows = np.divmod(keys >> _FIELD_BITS, size)
    keys = _key(rank[terms], rows, size, 0) + places
    keys.sort()
    weight = np.array(weights, np.int64)[keys & (1 << _FIELD_BITS) - 1]
    keys >>= _FIELD_BITS
    firsts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    terms, rows = np.divmod(keys[firsts], size)
    return terms, rows, np.minimum(np.add.reduceat(weight, firsts), MAX_WEIGHT)
