"""Cuts a prepared text into sentences and those into clauses, each with its place.

Rules are matched within a clause, so that "I prefer dark mode and I like big fonts" is two facts.
A clause without a subject of its own ("… but hate Java") is read with that of the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.extract.packs.reading import Pack
from engine.text.sentences import sentences

MOST_CHARACTERS: Final = 600
"""A clause is read up to here; a longer one is no sentence of a person's."""
MOST_FRAGMENTS: Final = 8
"""Pieces between commas that are looked at in a clause: more are a list."""
MOST_RESTARTS: Final = 20
"""Places from which a clause that is too long is read again: its last ones."""
_LINES: Final = re.compile(r"[^\n]+")
_END: Final = re.compile(r"[\s.。!！．｡]+$")
_BULLET: Final = re.compile(r"^[ \t]*(?:[-*•・]|\d{1,2}[.)])[ \t]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and where it begins."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause as rules read it: ``prefix`` characters of ``text`` are not in the turn itself."""

    text: str
    start: int
    prefix: int = 0

    def place(self, position: int) -> int:
        """Where a position within ``text`` is in the whole turn."""
        return self.start + max(0, position - self.prefix)

    def span(self, match: re.Match[str]) -> tuple[int, int]:
        """Where a match is, counted so that an elided subject has a place of its own."""
        offset = self.start - self.prefix
        return match.start() + offset, match.end() + offset


def sentences_of(form: str, pack: Pack) -> Iterator[Sentence]:
    """The sentences of a text: also a line ends one, unless it breaks off behind a verb."""
    position = 0
    for whole in sentences(form):
        start = form.index(whole, position)
        position = start + len(whole)
        yield from _lines(whole, start, pack)


def _lines(text: str, start: int, pack: Pack) -> Iterator[Sentence]:
    held: tuple[int, int] | None = None
    for line in _LINES.finditer(text):
        begin = held[0] if held else line.start()
        piece = text[begin : line.end()]
        if breaks_off(piece, pack):
            held = (begin, line.end())
            continue
        held = None
        yield from _sentence(piece, start + begin)
    if held:
        yield from _sentence(text[held[0] : held[1]], start + held[0])


def breaks_off(line: str, pack: Pack) -> bool:
    """Whether a line ends where its object should come: "I prefer"."""
    end = line.rstrip() + " x"
    if len(line) > 80:
        return False
    return any(
        (found := rule.pattern.search(end)) is not None and (found["o"] or "").strip() == "x"
        for rule in pack.rules
        if rule.category.value == "preference" and pack.language == "en"
    )


def _sentence(piece: str, start: int) -> Iterator[Sentence]:
    if bullet := _BULLET.match(piece):
        piece, start = piece[bullet.end() :], start + bullet.end()
    if stripped := piece.strip():
        yield Sentence(stripped, start + len(piece) - len(piece.lstrip()))


def clauses_of(sentence: Sentence, pack: Pack) -> Iterator[Clause]:
    """The clauses of a sentence, in order."""
    had_subject = False
    for piece, place in _pieces(sentence, pack):
        if had_subject and pack.subject and pack.elided.match(piece):
            yield Clause(pack.subject + piece, place, len(pack.subject))
            continue
        had_subject = pack.has_subject.search(piece) is not None
        yield Clause(piece, place)


def fragments_of(clause: Clause, pack: Pack) -> list[Clause]:
    """The pieces of a clause between commas; none where there is but one."""
    pieces: list[Clause] = []
    begin = 0
    ends = [found.span() for found in pack.fragment.finditer(clause.text, clause.prefix)]
    for end, following in [*ends, (len(clause.text), len(clause.text))]:
        if text := clause.text[begin:end]:
            is_first = begin == 0
            start = clause.start if is_first else clause.place(begin)
            pieces.append(Clause(text, start, clause.prefix if is_first else 0))
        begin = following
    return pieces[:MOST_FRAGMENTS] if ends else []


def _pieces(sentence: Sentence, pack: Pack) -> Iterator[tuple[str, int]]:
    begin = 0
    ends = [found.span() for found in pack.split.finditer(sentence.text)]
    for end, following in [*ends, (len(sentence.text), len(sentence.text))]:
        raw = sentence.text[begin:end]
        piece = _END.sub("", raw.strip())
        place = sentence.start + begin + len(raw) - len(raw.lstrip())
        begin = following
        if len(piece) <= MOST_CHARACTERS:
            if piece:
                yield piece, place
            continue
        found = [match.start() for match in pack.restart.finditer(piece)]
        starts = [0, *(start for start in found[-MOST_RESTARTS:] if start)]
        for start, stop in zip(starts, [*starts[1:], len(piece)], strict=True):
            yield piece[start:stop].rstrip()[:MOST_CHARACTERS], place + start
