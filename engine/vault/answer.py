"""Reading what a model answered: JSON with citations, every one of which must exist.

The check proves that an answer refers to passages of the result, never that it is true.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NoReturn

from engine.net import strict_json
from engine.net.errors import HttpFailed
from engine.net.strict_json import Json
from engine.vault.errors import VaultError

CODE: Final = "generation_invalid_response"
FENCED: Final = re.compile(r"\s*```(?:json|JSON)?[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\s*", re.DOTALL)
INLINE: Final = re.compile(r"\[\s*(S\d+(?:\s*[,;、，；]\s*S\d+)*)\s*\]")
LABEL: Final = re.compile(r"S\d+")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer whose citations exist. ``text`` is None when no model was asked."""

    text: str | None
    citations: tuple[str, ...] = ()
    is_insufficient: bool = False
    """Whether the evidence does not answer the question."""


def read(content: str, labels: Collection[str]) -> Answer:
    """The answer in the words of a model; ``labels`` are those of the result, such as ``S1``.

    One code fence around the object is tolerated, and nothing else. Citations are exactly labels
    of the result, at least one; labels in the text count as well and must exist. Raises
    ``VaultError`` (``generation_invalid_response``); nothing is repaired.
    """
    found = _object(content)
    text, listed = found.get("answer"), found.get("citations")
    declines = found.get("insufficient_evidence", False)
    if not isinstance(text, str) or not isinstance(declines, bool):
        _refuse("no answer")
    citations = _citations(listed, labels)
    for label in _inline(text):
        if label not in labels:
            _refuse("a citation that does not exist")
        citations.append(label)
    if not text.strip():
        if not declines or citations:
            _refuse("an empty answer")
        return Answer("", is_insufficient=True)
    if not citations:
        _refuse("an answer without citation")
    return Answer(text, tuple(dict.fromkeys(citations)), declines)


def _object(content: str) -> dict[str, Json]:
    fenced = FENCED.fullmatch(content)
    try:
        value = strict_json.parse((fenced[1] if fenced else content).encode("utf-8", "replace"))
    except HttpFailed:
        _refuse("no JSON")
    if not isinstance(value, dict):
        _refuse("no object")
    return value


def _citations(listed: Json, labels: Collection[str]) -> list[str]:
    if not isinstance(listed, list):
        _refuse("no list of citations")
    found: list[str] = []
    for label in listed:
        if not isinstance(label, str) or label not in labels:
            _refuse("a citation that does not exist")
        found.append(label)
    return found


def _inline(text: str) -> list[str]:
    return [label for group in INLINE.findall(text) for label in LABEL.findall(group)]


def _refuse(what: str) -> NoReturn:
    raise VaultError(f"The model sent {what}.", code=CODE, reason=what)
