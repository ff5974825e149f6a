"""How a text is cut into the terms of a keyword index, for people to look at.

The analyzer alone says what is indexed. This module only finds, for each of its terms, the place
of the source text it came from, so it cannot drift from what a search does: a term whose place
it cannot tell is shown over the piece of text around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from engine.text.language import language_of
from engine.text.normalize import HAN, HANGUL, KANA, UNSPACED, fold
from engine.text.tokenize import Analyzer
from engine.types import Purpose

_RUNS = re.compile(f"([{HAN}{KANA}{HANGUL}{UNSPACED}]+)|([^\\s{HAN}{KANA}{HANGUL}{UNSPACED}]+)")
_PIECE = re.compile(r"[^\s!-/:-@\[-`{-~]+")
_JOINING = re.compile("[\uff9e\uff9f\u1160-\u11ff]")
"""Half-width voicing marks and Korean vowels and finals: they melt into what stands before."""

Span = tuple[int, int]


class TokenKind(StrEnum):
    """What a token is.

    ``sub-word`` is a part of a word of unspaced script, ``bigram`` a pair of its characters;
    ``code-whole`` a code-like word as it stands (``node.js``), ``code-part`` a piece of one;
    ``stem`` a word that is indexed in another form; ``stop`` what a query leaves out.
    """

    WORD = "word"
    SUB_WORD = "sub-word"
    BIGRAM = "bigram"
    STEM = "stem"
    CODE_WHOLE = "code-whole"
    CODE_PART = "code-part"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class LensToken:
    """One piece of the source: ``text`` as written at ``start:end`` (code points), and its term."""

    text: str
    term: str
    kind: TokenKind
    start: int
    end: int
    is_indexed: bool


@dataclass(frozen=True, slots=True)
class Lens:
    """A text as the index sees it.

    ``tokens`` stand in the order of the source. ``terms`` are the distinct terms that are
    indexed or looked for, ``words`` the units that match mode ``all`` asks for.
    """

    folded: str
    language: str
    analyzer: str
    tokens: tuple[LensToken, ...]
    terms: tuple[str, ...]
    words: tuple[str, ...]


def lens(text: str, *, analyzer: Analyzer, purpose: Purpose) -> Lens:
    """Show how an analyzer cuts a text, as a query or as a document."""
    is_query = purpose is Purpose.QUERY
    wanted = dict.fromkeys(
        analyzer.query_terms(text) if is_query else analyzer.document_terms(text)
    )
    words = tuple(analyzer.words(text))
    folded, places = _folded(text)
    cut = _Cut(analyzer, frozenset(wanted), frozenset(words), is_query)
    found: list[LensToken] = []
    met: set[str] = set()
    for run in _RUNS.finditer(folded):
        for term, kind, (start, end) in cut.run(run):
            begin, stop = places[start][0], places[max(start, end - 1)][1]
            is_indexed = term in wanted and kind is not TokenKind.STOP
            found.append(LensToken(text[begin:stop], term, kind, begin, stop, is_indexed))
            met.add(term)
    unplaced = (term for term in wanted if term not in met)
    whole = (0, len(text))
    found.extend(LensToken(text, term, TokenKind.WORD, *whole, True) for term in unplaced)
    found.sort(key=lambda token: (token.start, -token.end))
    return Lens(folded, language_of(text), analyzer.version, tuple(found), tuple(wanted), words)


Placed = tuple[str, TokenKind, Span]


@dataclass(frozen=True, slots=True)
class _Cut:
    """Finds the terms of one run of text and where in the folded text they stand."""

    analyzer: Analyzer
    wanted: frozenset[str]
    words: frozenset[str]
    is_query: bool

    def run(self, found: re.Match[str]) -> Iterator[Placed]:
        """The tokens of a run of unspaced script, or of text between two spaces."""
        tokens = self._unspaced(found[1]) if found[1] else self._spaced(found[2])
        for term, kind, (start, end) in tokens:
            yield term, kind, (found.start() + start, found.start() + end)

    def _unspaced(self, run: str) -> Iterator[Placed]:
        terms = self._terms_in(run)
        covered = [False] * len(run)
        for term in terms:
            for start in _occurrences(term, run):
                end = start + len(term)
                covered[start:end] = [True] * len(term)
                yield term, self._unspaced_kind(term, run), (start, end)
        for start, end in _gaps(covered):
            yield run[start:end], TokenKind.STOP, (start, end)

    def _terms_in(self, run: str) -> Iterable[str]:
        own = dict.fromkeys(self.analyzer.document_terms(run))
        if not self.is_query:
            return own
        # What the query looks for here; its other terms come from elsewhere in the text.
        return [term for term in {**own, **dict.fromkeys(self.wanted)} if term in self.wanted]

    def _unspaced_kind(self, term: str, run: str) -> TokenKind:
        if len(term) == 2 and len(run) > 1:
            return TokenKind.BIGRAM
        is_word = term == run or (term in self.words and (self.is_query or len(term) > 2))
        return TokenKind.WORD if is_word else TokenKind.SUB_WORD

    def _spaced(self, chunk: str) -> Iterator[Placed]:
        terms = self.analyzer.document_terms(chunk)
        pieces = [(piece.span(), self._piece_terms(piece[0])) for piece in _PIECE.finditer(chunk)]
        wholes: list[Span] = []
        taken: dict[str, int] = {}
        for term in terms:
            span = _place(term, chunk, pieces, taken.get(term, 0))
            taken[term] = span[1]
            kind = self._spaced_kind(term, chunk[slice(*span)], span, wholes)
            if kind is TokenKind.CODE_WHOLE:
                wholes.append(span)
            yield term, kind, span

    def _piece_terms(self, piece: str) -> frozenset[str]:
        return frozenset(self.analyzer.document_terms(piece))

    def _spaced_kind(self, term: str, source: str, span: Span, wholes: list[Span]) -> TokenKind:
        if self.is_query and term not in self.wanted:
            return TokenKind.STOP
        if any(map(str.isalnum, term)) and not term.isalnum() and term == source:
            return TokenKind.CODE_WHOLE
        if any(start <= span[0] and span[1] <= end for start, end in wholes):
            return TokenKind.CODE_PART
        return TokenKind.WORD if term == source else TokenKind.STEM


def _place(term: str, chunk: str, pieces: list[tuple[Span, frozenset[str]]], after: int) -> Span:
    """Where a term came from: a piece that gives it, the same letters, or the whole chunk."""
    for span, terms in pieces:
        if span[0] >= after and term in terms and term.isalnum():
            return span
    start = chunk.find(term, after)
    if start >= 0:
        return start, start + len(term)
    edges = list(_PIECE.finditer(chunk))
    return (edges[0].start(), edges[-1].end()) if edges else (0, len(chunk))


def _occurrences(term: str, run: str) -> Iterator[int]:
    start = run.find(term)
    while start >= 0:
        yield start
        start = run.find(term, start + 1)


def _gaps(covered: list[bool]) -> Iterator[Span]:
    """Stretches that no token covers."""
    start: int | None = None
    for place, is_covered in enumerate([*covered, True]):
        if not is_covered and start is None:
            start = place
        elif is_covered and start is not None:
            yield start, place
            start = None


def _folded(text: str) -> tuple[str, list[Span]]:
    """The folded text, and for each of its characters the span of the source it comes from."""
    folded = fold(text)
    parts: list[str] = []
    places: list[Span] = []
    for start, end in _clusters(text):
        part = fold(text[start:end])
        parts.append(part)
        places.extend([(start, end)] * len(part))
    if "".join(parts) != folded:
        # Characters melted across the clusters told apart here: no finer place is known.
        return folded, [(0, len(text))] * len(folded)
    return folded, places


def _clusters(text: str) -> Iterator[Span]:
    """Spans of characters that are folded together: a letter with the marks on it."""
    start = 0
    for place in range(1, len(text) + 1):
        is_inside = place < len(text) and (
            unicodedata.combining(text[place]) or _JOINING.match(text[place])
        )
        if not is_inside:
            yield start, place
            start = place
