"""What a conversation adds to the order: the turns around a good turn, a good session, a speaker.

A short turn says little by itself. Its neighbours answer it, its session shares its subject, and
a question that names a person mostly asks for what that person said. Weights are round numbers
chosen on one set of dialogues (docs/benchmarks.md); passages without a session are not touched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from engine.text.normalize import has_unspaced
from engine.types import Beside, Place

WINDOW = 0.25
SESSION = 0.5
SPEAKER = 0.2
SESSION_TURNS = 3
"""A session is as good as its best three turns."""

_WORDS = re.compile(r"\w+")

Key = TypeVar("Key")

Scores = dict[int, float]
Session = tuple[int, str]


def neighbours(beside: Mapping[int, Beside], places: Mapping[int, Place]) -> set[int]:
    """Passages beside others that have no place yet."""
    named = {other for pair in beside.values() for other in pair}
    return {other for other in named if other is not None and other not in places}


def converse(
    ordered: Sequence[tuple[int, float]],
    places: Mapping[int, Place],
    beside: Mapping[int, Beside],
    query: str,
) -> list[tuple[int, float]]:
    """The order with neighbouring turns, sessions and speakers counted in; scores 0..1.

    ``places`` holds the candidates and their ``neighbours``. Without any session in it the order
    comes back as it was.
    """
    if not any(place.session for place in places.values()):
        return list(ordered)
    scores = dict(ordered)
    for key, share in _window(scores, places, beside).items():
        scores[key] = scores.get(key, 0.0) + WINDOW * share
    turns = _turns(scores, places)
    good = _shares({session: _best(scores, found) for session, found in turns.items()})
    named = _Named(query)
    for session, found in turns.items():
        share = SESSION * good[session]
        for passage_id in found:
            scores[passage_id] += share + SPEAKER * named(places[passage_id].speaker)
    total = 1 + WINDOW + SESSION + SPEAKER
    shares = [(passage_id, score / total) for passage_id, score in scores.items()]
    return sorted(shares, key=lambda pair: (-pair[1], pair[0]))


def _window(base: Scores, places: Mapping[int, Place], beside: Mapping[int, Beside]) -> Scores:
    """For each turn the sum over itself and its neighbours, as shares of the greatest."""
    window: Scores = {}
    for passage_id, score in base.items():
        place = places.get(passage_id)
        if place is None or not place.session:
            continue
        for turn in (passage_id, *beside.get(passage_id, ())):
            if turn is not None and turn in places:
                window[turn] = window.get(turn, 0.0) + score
    return _shares(window)


def _turns(scores: Scores, places: Mapping[int, Place]) -> dict[Session, list[int]]:
    """The turns of each session."""
    turns: dict[Session, list[int]] = {}
    for passage_id in scores:
        place = places.get(passage_id)
        if place is not None and place.session:
            turns.setdefault((place.owner, place.session), []).append(passage_id)
    return turns


def _best(scores: Scores, turns: Sequence[int]) -> float:
    """The mean of a session's best turns."""
    best = sorted([scores[turn] for turn in turns], reverse=True)[:SESSION_TURNS]
    return sum(best) / SESSION_TURNS


def _shares(scores: dict[Key, float]) -> dict[Key, float]:
    best = max(scores.values(), default=0.0)
    return {key: score / best for key, score in scores.items()} if best > 0 else scores


class _Named:
    """Whether a query names a speaker, by any part of the name; each name is looked at once."""

    def __init__(self, query: str) -> None:
        self._asked = query.casefold()
        self._words = set(_WORDS.findall(self._asked))
        self._known: dict[str, bool] = {}

    def __call__(self, speaker: str) -> bool:
        if speaker not in self._known:
            parts = _WORDS.findall(speaker.casefold())
            self._known[speaker] = any(map(self._is_asked, parts))
        return self._known[speaker]

    def _is_asked(self, part: str) -> bool:
        return part in (self._asked if has_unspaced(part) else self._words)
