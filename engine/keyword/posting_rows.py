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
WIDEST = 4
"""Bytes of a character, at most."""
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

    def lines(self, weights: FieldWeights) -> list[str]:
        """Its postings as lines of COPY: term, part, passage, length, weight, repeated.

        No term holds a character that would have to be escaped: see ``term_form``.
        """
        counts, length = self.counted(weights)
        lines: list[str] = []
        for part in self.parts():
            middle = f"\t{part}\t{self.passage}\t{length}\t"
            end = "\tt\n" if self.is_shared and part != SHARED else "\tf\n"
            lines.append(f"{EVERY}{middle}0{end}")
            lines.extend([f"{term}{middle}{count}{end}" for term, count in counts.items()])
        return lines

    def counted(self, weights: FieldWeights) -> tuple[dict[str, int], int]:
        """Weight of each term, and how many terms there are in all."""
        title, body, meta = self.title.split(), self.body.split(), self.meta.split()
        for_title, for_body, for_meta = weights
        counts = Counter(title * for_title + body * for_body + meta * for_meta)
        if max(map(len, counts), default=0) * WIDEST > MAX_TERM:
            counts = Counter({short(term): count for term, count in counts.items()})
        if max(counts.values(), default=0) > MAX_WEIGHT:
            counts = Counter({term: min(count, MAX_WEIGHT) for term, count in counts.items()})
        return counts, len(title) + len(body) + len(meta)


def rows_of(passages: Iterable[Passage], analyzer: Analyzer) -> list[TermRow]:
    """Rows in order of the passages' ids; of two with one id the last counts."""
    latest = {passage.id: passage for passage in passages}
    return [_row(latest[number], analyzer) for number in sorted(latest)]


def short(term: str) -> str:
    """A term as postings are found by."""
    if len(term) * WIDEST <= MAX_TERM or len(data := term.encode()) <= MAX_TERM:
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
