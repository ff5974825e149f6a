"""A text as the tokenizer cuts it, in groups of one kind each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy

from engine.text.lens import Lens, TokenKind
from engine.text.normalize import fold
from engine.text.template import embedded_text, indexed_text
from engine.types import Purpose
from memory.models import Memory
from memory.principal import Principal
from memory.services.lens import MAX_TEXT, lens

MOST: Final = 120
"""Tokens of one group that are shown."""

KINDS: Final[Mapping[TokenKind, Promise]] = {
    TokenKind.WORD: gettext_lazy("Words"),
    TokenKind.STEM: gettext_lazy("Other forms of a word"),
    TokenKind.CODE_WHOLE: gettext_lazy("Code-like, whole"),
    TokenKind.CODE_PART: gettext_lazy("Code-like, in parts"),
    TokenKind.BIGRAM: gettext_lazy("Pairs of characters"),
    TokenKind.SUB_WORD: gettext_lazy("Parts of words"),
    TokenKind.STOP: gettext_lazy("Left out: says too little"),
}
LANGUAGES: Final[Mapping[str, Promise]] = {
    "zh": gettext_lazy("Chinese"),
    "ja": gettext_lazy("Japanese"),
    "ko": gettext_lazy("Korean"),
    "latin": gettext_lazy("Latin script"),
    "cyrillic": gettext_lazy("Cyrillic script"),
    "arabic": gettext_lazy("Arabic script"),
    "other": pgettext_lazy("language of a text", "other"),
}


@dataclass(frozen=True, slots=True)
class Token:
    """One distinct piece. ``term`` is empty where it is indexed as it is written."""

    text: str
    term: str
    is_wanted: bool


@dataclass(slots=True)
class Group:
    """The pieces of one kind, and how many more there are."""

    label: Promise
    kind: str
    tokens: list[Token] = field(default_factory=list)
    more: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """A text as it was cut. ``is_part`` marks a text that is longer than what was looked at."""

    seen: Lens
    language: str
    groups: list[Group]
    is_part: bool = False


def of_query(principal: Principal, text: str) -> Cut:
    """How a query is cut."""
    seen = lens(principal, text.strip(), Purpose.QUERY)
    return Cut(seen, _language(seen), _groups(seen, ()))


def of_memory(principal: Principal, memory: Memory, terms: Collection[str]) -> Cut:
    """How what is indexed of a memory is cut; ``terms`` are those a query looks for."""
    parts = indexed_text(memory.key, memory.metadata)
    text = embedded_text(parts.title, parts.body_prefix + memory.content)
    text = f"{text}\n{parts.meta}" if parts.meta else text
    seen = lens(principal, text[:MAX_TEXT], Purpose.DOCUMENT)
    return Cut(seen, _language(seen), _groups(seen, terms), len(text) > MAX_TEXT)


def _language(seen: Lens) -> str:
    return str(LANGUAGES.get(seen.language, seen.language))


def _groups(seen: Lens, wanted: Collection[str]) -> list[Group]:
    groups = {kind: Group(label, kind.value) for kind, label in KINDS.items()}
    shown: set[tuple[TokenKind, str, str]] = set()
    for token in seen.tokens:
        group, key = groups[token.kind], (token.kind, token.text, token.term)
        if key in shown:
            continue
        shown.add(key)
        if len(group.tokens) >= MOST:
            group.more += 1
            continue
        is_plain = token.kind is TokenKind.STOP or token.term == fold(token.text)
        term = "" if is_plain else token.term
        group.tokens.append(Token(token.text, term, token.term in wanted))
    return [group for group in groups.values() if group.tokens]
