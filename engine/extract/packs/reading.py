"""Reads the rule packs. A pack is data; what its fields mean is said here.

``macros``            pieces of patterns, named in braces: ``{I}``; one may use those before it.
``assistant_macros``  the same names for turns of the assistant, which speak of ``you``.
``signal``            what every clause that could hold a fact has; others are not read.
``split``             patterns between whose ends a sentence is cut into clauses.
``fragment``          between what pieces of a clause, for rules that read those.
``restart``           where a run of words without end is read from (no sentence is so long).
``elided``            a clause that begins so has the subject of the one before it.
``subject``           what is then put before it.
``person``            what a long turn has that is somebody's own, and an article has not: without
                      it, rules that are ``bare`` are not tried.
``bare``              whether all rules of the language are so.
``lead_in``           what may stand before a match within its clause; anything else means that the
                      match is part of something larger ("the editor I prefer").
``drop``              words at the head of a clause that a statement leaves out ("and", "hi").
``foreign``           where text begins that was given to be translated or corrected.
``trim``              what is cut off the end of an object.
``hedge``             words that halve the trust in a fact ("maybe").
``[[guards]]``        ``name``, ``scope`` (sentence, clause, before, object, match), ``pattern``,
                      and optionally ``unless`` (a pattern), ``categories`` and ``bare`` (only for
                      rules that are so).
``[[rules]]``         ``name``, ``category``, ``polarity``, ``confidence``, ``pattern`` with the
                      group ``o`` (the object; ``o2`` and ``o3`` in other branches), optionally the
                      groups ``k`` (what the content is, where the object alone would lose the
                      negation), ``v`` (a verb that must be a word of its own) and ``n`` (a noun
                      that names the slot), ``slot`` (the key, instead of the object), ``follows``
                      (the sentence before must match it), ``within`` (its own sentence must match
                      it), ``near`` (its own sentence, the one before or the one
                      after must match it: "Every time, please."), ``bare`` (it matches without a
                      subject), ``fragment`` (it is also tried on each piece of a clause between
                      commas), ``despite`` (names of guards that do not hold it) and ``beside`` (it
                      may match where an earlier rule has matched already).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, cast

from engine.extract.facts import Category, Polarity, Speaker

LANGUAGES: Final = ("en", "zh", "ja")
_MACRO: Final = re.compile(r"\{([A-Z_]+)\}")
_FLAGS: Final = re.IGNORECASE
_NOTHING: Final = r"(?!)"


@dataclass(frozen=True, slots=True)
class Guard:
    """What keeps a match from becoming a fact."""

    name: str
    scope: str
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    categories: frozenset[str]
    of_bare: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One way of saying a fact."""

    name: str
    category: Category
    polarity: Polarity
    confidence: float
    pattern: re.Pattern[str]
    slot: str
    follows: re.Pattern[str] | None
    within: re.Pattern[str] | None
    near: re.Pattern[str] | None
    is_beside: bool
    reads_fragments: bool
    is_bare: bool
    despite: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pack:
    """The rules and guards of one language, for one speaker."""

    language: str
    version: int
    rules: tuple[Rule, ...]
    guards: tuple[Guard, ...]
    signal: re.Pattern[str]
    split: re.Pattern[str]
    fragment: re.Pattern[str]
    restart: re.Pattern[str]
    elided: re.Pattern[str]
    subject: str
    has_subject: re.Pattern[str]
    person: re.Pattern[str]
    lead_in: re.Pattern[str]
    foreign: tuple[re.Pattern[str], ...]
    trim: re.Pattern[str]
    hedge: re.Pattern[str]
    drop: re.Pattern[str]


@cache
def pack(language: str, speaker: Speaker = Speaker.USER) -> Pack:
    """The pack of a language, compiled on first use."""
    text = files("engine.extract.packs").joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return parse(tomllib.loads(text), speaker)


def parse(data: Mapping[str, object], speaker: Speaker) -> Pack:
    """A pack from its data. Raises ``re.error``, ``KeyError`` or ``ValueError`` for a bad one."""
    macros = dict(cast("Mapping[str, str]", data["macros"]))
    if speaker is Speaker.ASSISTANT:
        macros.update(cast("Mapping[str, str]", data.get("assistant_macros", {})))
    filled: dict[str, str] = {}
    for name, value in macros.items():
        filled[name] = _fill(value, filled)

    is_bare = bool(data.get("bare", False))

    def compiled(name: str) -> re.Pattern[str]:
        return _pattern(cast("str", data.get(name, _NOTHING)), filled)

    rules = cast("Sequence[Mapping[str, object]]", data["rules"])
    guards = cast("Sequence[Mapping[str, object]]", data["guards"])
    return Pack(
        language=cast("str", data["language"]),
        version=cast("int", data["version"]),
        rules=tuple(_rule(entry, filled, is_bare) for entry in rules),
        guards=tuple(_guard(entry, filled) for entry in guards),
        signal=_pattern(cast("str", data.get("signal", "")), filled),
        split=compiled("split"),
        fragment=compiled("fragment"),
        restart=compiled("restart"),
        elided=compiled("elided"),
        subject=_subject(data, speaker),
        has_subject=compiled("has_subject"),
        person=_pattern(cast("str", data.get("person", "")), filled),
        lead_in=compiled("lead_in"),
        foreign=tuple(
            _pattern(entry, filled) for entry in cast("Sequence[str]", data.get("foreign", ()))
        ),
        trim=compiled("trim"),
        hedge=compiled("hedge"),
        drop=compiled("drop"),
    )


def _subject(data: Mapping[str, object], speaker: Speaker) -> str:
    name = "subject" if speaker is Speaker.USER else "assistant_subject"
    return cast("str", data.get(name, ""))


def _rule(entry: Mapping[str, object], macros: Mapping[str, str], is_bare: bool) -> Rule:
    follows = cast("str", entry.get("follows", ""))
    within = cast("str", entry.get("within", ""))
    near = cast("str", entry.get("near", ""))
    return Rule(
        name=cast("str", entry["name"]),
        category=Category(cast("str", entry["category"])),
        polarity=Polarity(cast("str", entry.get("polarity", "positive"))),
        confidence=float(cast("float", entry["confidence"])),
        pattern=_pattern(cast("str", entry["pattern"]), macros),
        slot=cast("str", entry.get("slot", "")),
        follows=_pattern(follows, macros) if follows else None,
        within=_pattern(within, macros) if within else None,
        near=_pattern(near, macros) if near else None,
        is_beside=bool(entry.get("beside", False)),
        reads_fragments=bool(entry.get("fragment", False)),
        is_bare=is_bare or bool(entry.get("bare", False)),
        despite=frozenset(cast("Sequence[str]", entry.get("despite", ()))),
    )


def _guard(entry: Mapping[str, object], macros: Mapping[str, str]) -> Guard:
    unless = cast("str", entry.get("unless", ""))
    return Guard(
        name=cast("str", entry["name"]),
        scope=cast("str", entry["scope"]),
        pattern=_pattern(cast("str", entry["pattern"]), macros),
        unless=_pattern(unless, macros) if unless else None,
        categories=frozenset(cast("Sequence[str]", entry.get("categories", ()))),
        of_bare=bool(entry.get("bare", False)),
    )


def _pattern(text: str, macros: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(_fill(text, macros), _FLAGS)


def _fill(text: str, macros: Mapping[str, str]) -> str:
    return _MACRO.sub(lambda found: f"(?:{macros[found[1]]})", text)
