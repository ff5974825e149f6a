"""Sentences that are made in one language and may be read in another.

A job runs in no reader's language, and its report is kept: so the sentence is kept in parts, the
message as the catalogues know it and the values in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext


class Said(str):
    """A sentence in the language of the moment, which also remembers what it is made of."""

    template: str
    values: Mapping[str, str | int]

    def __new__(cls, template: str, values: Mapping[str, str | int]) -> Said:
        made = super().__new__(cls, gettext(template) % values)
        made.template, made.values = template, dict(values)
        return made


def said(template: str, **values: str | int) -> Said:
    """A sentence with ``%(name)s`` placeholders; the catalogues find ``template`` by this name."""
    return Said(template, values)


def parts(sentences: Iterable[str]) -> list[dict[str, Any]]:
    """Sentences as they are kept: message and values of each."""
    return [
        {"text": s.template, "values": dict(s.values)} if isinstance(s, Said) else {"text": s}
        for s in sentences
    ]


def told(kept: Sequence[Mapping[str, Any]]) -> str:
    """Kept sentences in the reader's language."""
    texts = []
    for part in kept:
        text, values = gettext(part["text"]), part.get("values")
        texts.append(text % values if values else text)
    return "; ".join(texts)
