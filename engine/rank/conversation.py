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
from engine.types import Place

WINDOW = 0.25
SESSION = 0.5
SPEAKER = 0.2
SESSION_TURNS = 3
"""A session is as good as its best three turns."""

_WORDS = re.compile(r"\w+")

Key = TypeVar("Key")

Scores = dict[int, float]
Session = tuple[int, str]


def neighbours(places: Mapping[int, Place]) -> set[int]:
    """Passages beside these that are not among them."""
    beside = {other for place in places.values() for other in (place.before, place.after)}
    return {other for other in beside if other is not None and other not in places}


def converse(
    ordered: Sequence[tuple[int, float]], places: Mapping[int, Place], query: str
) -> list[tuple[int, float]]:
    """The order with neighbouring turns, sessions and speakers counted in; scores 0..1.

    ``places`` holds the candidates and their ``neighbours``. Without any session in it the order
    comes back as it was.
    """
    if not any(place.session for place in places.values()):
        return list(ordered)
    base = dict(ordered)
    window = _window(base, places)
    scores = {key: base.get(key, 0.0) + WINDOW * window.get(key, 0.0) for key in base | window}
    sessions = _sessions(scores, places)
    named = _Named(query)
    total = 1 + WINDOW + SESSION + SPEAKER
    for passage_id in scores:
        place = places.get(passage_id)
        if place is not None and place.session:
            session = sessions[place.owner, place.session]
            scores[passage_id] += SESSION * session + SPEAKER * named(place.speaker)
        scores[passage_id] /= total
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _window(base: Scores, places: Mapping[int, Place]) -> Scores:
    """For each turn the sum over itself and its neighbours, as shares of the greatest."""
    window: Scores = {}
    for passage_id, score in base.items():
        place = places.get(passage_id)
        if place is None or not place.session:
            continue
        for turn in (passage_id, place.before, place.after):
            if turn is not None and turn in places:
                window[turn] = window.get(turn, 0.0) + score
    return _shares(window)


def _sessions(scores: Scores, places: Mapping[int, Place]) -> dict[Session, float]:
    """The mean of each session's best turns, as shares of the greatest."""
    turns: dict[Session, list[float]] = {}
    for passage_id, score in scores.items():
        place = places.get(passage_id)
        if place is not None and place.session:
            turns.setdefault((place.owner, place.session), []).append(score)
    means = {
        session: sum(sorted(found, reverse=True)[:SESSION_TURNS]) / SESSION_TURNS
        for session, found in turns.items()
    }
    return _shares(means)


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
