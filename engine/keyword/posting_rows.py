"""Postings of a passage as rows of a table: one for each term and part, and one for the passage."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.keyword.cutting import FieldWeights
from engine.keyword.term_form import stored
from engine.text.tokenize import Analyzer
from engine.types import Passage, Scope

EVERY = ""
"""A term that every passage holds: its postings count the passages of a part and their terms."""
SHARED = 0
"""Part of shared passages. Owners have their own numbers, vaults theirs below zero."""
MAX_TERM = 200
"""Bytes; a longer term is known by its beginning and a hash (an entry of a btree is bounded)."""
KEPT = 24
MAX_WEIGHT = 2**15 - 1

Key = tuple[str, int, int]
"""Term, part and passage of a posting."""


@dataclass(frozen=True, slots=True)
class TermRow:
    """Terms of one passage. ``is_shared``: it is in the part of shared ones as well."""

    passage: int
    part: int
    is_shared: bool
    title: str
    body: str
    meta: str

    def parts(self) -> tuple[int, ...]:
        """The parts that hold it."""
        return (self.part, SHARED) if self.is_shared else (self.part,)

    def terms(self) -> set[str]:
        """Terms of its postings."""
        terms = {EVERY}
        for field in (self.title, self.body, self.meta):
            terms.update(map(short, field.split()))
        return terms

    def postings(self) -> Iterator[Key]:
        """Keys of its postings."""
        for part in self.parts():
            for term in self.terms():
                yield term, part, self.passage

    def lines(self, weights: FieldWeights) -> Iterator[str]:
        """Its postings as lines of COPY: term, part, passage, length, weight, repeated.

        No term holds a character that would have to be escaped: see ``term_form``.
        """
        counts: Counter[str] = Counter()
        length = 0
        for field, weight in zip((self.title, self.body, self.meta), weights, strict=True):
            terms = field.split()
            length += len(terms)
            for term, count in Counter(terms).items():
                counts[term] += count * weight
        for part in self.parts():
            mark = "t" if self.is_shared and part != SHARED else "f"
            end = f"{part}\t{self.passage}\t{length}\t"
            yield f"{EVERY}\t{end}0\t{mark}\n"
            for term, weight in counts.items():
                yield f"{short(term)}\t{end}{min(weight, MAX_WEIGHT)}\t{mark}\n"


def rows_of(passages: Iterable[Passage], analyzer: Analyzer) -> list[TermRow]:
    """Rows in order of the passages' ids; of two with one id the last counts."""
    latest = {passage.id: passage for passage in passages}
    return [_row(latest[number], analyzer) for number in sorted(latest)]


def short(term: str) -> str:
    """A term as postings are found by."""
    if len(term) * 4 <= MAX_TERM or len(data := term.encode()) <= MAX_TERM:
        return term
    return term[:KEPT] + hashlib.blake2b(data, digest_size=16).hexdigest()


def lowered(terms: str) -> str:
    """Terms as an index holds them, ASCII letters small as FTS5 takes them."""
    return stored(terms).encode().lower().decode()


def parts_within(scope: Scope) -> list[int] | None:
    """Numbers of the parts a scope names; None when it names every owner."""
    if scope.owners is None:
        return None
    parts = [*sorted(scope.owners), *(-vault for vault in sorted(scope.vaults))]
    return [*parts, SHARED] if scope.include_shared else parts


def _row(passage: Passage, analyzer: Analyzer) -> TermRow:
    fields = (passage.title, passage.body, passage.meta)
    title, body, meta = (lowered(" ".join(analyzer.document_terms(field))) for field in fields)
    if passage.vault is not None:
        return TermRow(passage.id, -passage.vault, False, title, body, meta)
    return TermRow(passage.id, passage.owner, passage.is_shared, title, body, meta)
