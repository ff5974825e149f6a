"""Where sentences end, in text that may be English, Chinese or Japanese, or a mixture.

A full stop ends a sentence only before whitespace or the end, and not after an abbreviation, an
initial or a list number; 。！？ always do, with the closing quotes behind them. A line break
alone is no end, an empty line is.
"""

from __future__ import annotations

import re

_CLOSERS = "\"'\u2019\u201d)\\]}\u300d\u300f\uff09\u3011\u300b\u3009"
_END = re.compile(rf"(?:[.!?]+|[。！？｡．…]+[!?]*)[{_CLOSERS}]*|\n[ \t]*\n")
_CJK_STOPS = "。！？｡．…"
_LAST_WORD = re.compile(r"(?:^|[\s(\[\"'\u201c\u2018])([^\s(\[\"'\u201c\u2018]*)$")
_LIST_NUMBER = re.compile(r"(?:^|[\n.!?])[ \t]*\d{1,2}$")
_QUOTED_INSIDE = re.compile(r"[」』](?:と|って|など|の)")
_LOOK_BACK = 40

_ABBREVIATED = """
    mr mrs ms dr prof st sr jr rev hon gen col capt lt sgt vs e.g i.e cf al fig figs no nos vol
    pp p ch ed eds approx dept univ inc ltd co corp bros jan feb mar apr jun jul aug sep sept oct
    nov dec mon tue wed thu fri sat sun est ca"""
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
# These do end a sentence when a capital follows.
_MAYBE_AT_END = "etc inc ltd co corp jr sr a.m p.m u.s u.k u.n no st"
_MAYBE_ENDS = frozenset(_MAYBE_AT_END.split())


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without the space around them."""
    pieces: list[str] = []
    start = 0
    for end in _ends(text):
        piece = text[start:end].strip()
        if piece:
            pieces.append(piece)
        start = end
    rest = text[start:].strip()
    return [*pieces, rest] if rest else pieces


def first_sentences(text: str, count: int = 3) -> str:
    """The beginning of a text up to the end of its sentence number ``count``, as it stands."""
    start = found = 0
    for end in _ends(text):
        found += bool(text[start:end].strip())
        if found == count:
            return text[:end].strip()
        start = end
    return text.strip()


def _ends(text: str) -> list[int]:
    return [found.end() for found in _END.finditer(text) if _is_end(text, found)]


def _is_end(text: str, found: re.Match[str]) -> bool:
    mark = found[0]
    after = text[found.end() : found.end() + 2]
    if mark.startswith("\n"):
        return True
    if mark[0] in _CJK_STOPS:
        trails_off = mark[0] == "…" and after[:1].islower()
        return not (trails_off or _QUOTED_INSIDE.match(mark[-1:] + after))
    if after and not after[0].isspace() and after[0].isascii():
        return False
    following = text[found.end() : found.end() + _LOOK_BACK].lstrip()[:1]
    if following.islower() and len(mark) > 1:
        # Dots that trail off, or a quotation that its sentence goes on from.
        return False
    return mark[0] != "." or _is_full_stop(text, found, following)


def _is_full_stop(text: str, found: re.Match[str], following: str) -> bool:
    before = text[max(0, found.start() - _LOOK_BACK) : found.start()]
    if _LIST_NUMBER.search(before):
        return not following
    match = _LAST_WORD.search(before)
    word = match[1] if match else ""
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    if is_initial and following.isupper():
        return False
    folded = word.lower()
    if folded in _MAYBE_ENDS:
        return not following or following.isupper()
    return folded not in _ABBREVIATIONS or not following
