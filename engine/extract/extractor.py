"""Facts from one turn, by rules: prepare, cut into clauses, match, guard, name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from engine.extract.clauses import Clause, Sentence, clauses_of, fragments_of, sentences_of
from engine.extract.facts import (
    MAX_CONTENT,
    MAX_TEXT,
    Category,
    Extraction,
    Fact,
    Guarded,
    Speaker,
)
from engine.extract.guarding import held_back
from engine.extract.instructions import instructions_in
from engine.extract.keys import SLUG_LENGTH, digest, full_slug, key_of, slug
from engine.extract.matching import BLANK, Prepared, form_of, prepare
from engine.extract.packs.reading import LANGUAGES, Pack, Rule, pack
from engine.text.jieba_words import segmenter
from engine.text.normalize import has_han, has_kana, normalize

ASSISTANT_TRUST: Final = 0.7
"""What an assistant says of its user is taken with so much less confidence."""
HEDGED: Final = 0.6
NEAR: Final = 40
"""Characters before a match in which a doubt counts; a quarter of it behind."""
SHORT_TURN: Final = 160
"""Characters up to which a turn without a pronoun is taken for somebody's own words."""
MOST_NEAR: Final = 600
"""Characters of a sentence in which a rule looks for what has to be near."""
MOST_MATCHES: Final = 300
"""Matches of a turn that are looked at in each language: more are no person's."""
_ORDER: Final = {category: place for place, category in enumerate(Category)}
_SPACE: Final = re.compile(r"\s+")
_LATIN: Final = re.compile("[A-Za-z]")
_SAYS_SOMETHING: Final = re.compile(r"\w")
_EDGES: Final = " \t\n\"'“”‘’`.,;:!?…，。！？；：、()（）「」『』*_~"
_OPENING: Final = " \t\n\"'“”‘’`,;:!?…，。！？；：、)）」』*_~"
_OPENERS: Final = {")": "(", "）": "（", "」": "「", "』": "『"}
_QUOTES: Final = {'"': '"', "'": "'", "`": "`", "”": "“", "’": "‘", "」": "「", "』": "『"}
_SYMBOLS: Final = frozenset({"So", "Sk", "Cf"})
"""Emoji and the marks between them."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A rule that matched within a clause of a sentence."""

    prepared: Prepared
    pack: Pack
    sentence: Sentence
    clause: Clause
    rule: Rule
    match: re.Match[str]


def extract(text: str, *, speaker: Speaker = Speaker.USER) -> Extraction:
    """What a turn says about its user; of a long one its last 65,536 characters.

    Facts come by category and then in the order of the text, one for each key: the first, or the
    last of those that contradict each other.
    """
    text = text[-MAX_TEXT:]
    packs = {language: pack(language, speaker) for language in _languages(form_of(text))}
    foreign = [pattern for each in packs.values() for pattern in each.foreign]
    prepared = prepare(text, foreign)
    facts: list[Fact] = []
    guarded = [Guarded(piece, reason) for reason, piece in prepared.blanked]
    for rules in packs.values():
        for matched in islice(_all_matches(prepared, rules), MOST_MATCHES):
            _judge(matched, facts, guarded)
    if speaker is Speaker.ASSISTANT:
        facts = [_said_by_assistant(fact) for fact in facts]
    orders = tuple(instructions_in(prepared))
    return Extraction(tuple(_distinct(facts)), tuple(guarded), orders)


def _languages(text: str) -> list[str]:
    wanted = {"en": _LATIN.search(text) is not None, "zh": has_han(text), "ja": has_kana(text)}
    return [language for language in LANGUAGES if wanted[language]]


def _is_written_in(sentence: str, language: str, whole: str) -> bool:
    if language == "en":
        return _LATIN.search(sentence) is not None
    is_japanese = has_kana(sentence) or (has_han(sentence) and has_kana(whole))
    return is_japanese if language == "ja" else has_han(sentence) and not is_japanese


def _all_matches(prepared: Prepared, rules: Pack) -> Iterator[Matched]:
    every = list(sentences_of(prepared.form, rules))
    is_personal = len(prepared.form) <= SHORT_TURN or rules.person.search(prepared.form) is not None
    for place, sentence in enumerate(every):
        if _is_written_in(sentence.text, rules.language, prepared.form):
            before = every[place - 1].text if place else ""
            after = every[place + 1].text if place + 1 < len(every) else ""
            for matched in _matches(prepared, rules, sentence, (before, after)):
                if is_personal or not matched.rule.is_bare:
                    yield matched


def _judge(matched: Matched, facts: list[Fact], guarded: list[Guarded]) -> None:
    fact = _fact(matched)
    if fact is None:
        return
    reason = held_back(matched.pack, matched.sentence, matched.clause, matched.rule, matched.match)
    if reason:
        guarded.append(Guarded(fact.statement, reason))
    else:
        facts.append(fact)


def _matches(
    prepared: Prepared, rules: Pack, sentence: Sentence, beside: tuple[str, str]
) -> Iterator[Matched]:
    """Matches that do not overlap; a rule that stands earlier in the pack goes first."""
    in_place = [rule for rule in rules.rules if _is_in_place(rule, sentence, beside)]
    of_fragments = [rule for rule in in_place if rule.reads_fragments]
    for clause in clauses_of(sentence, rules):
        if not rules.signal.search(clause.text):
            continue
        taken: list[tuple[int, int]] = []
        seen: set[tuple[str, int, int]] = set()
        for part in [clause, *fragments_of(clause, rules)]:
            for rule in in_place if part is clause else of_fragments:
                for match in rule.pattern.finditer(part.text):
                    span = part.span(match)
                    if (rule.name, *span) in seen or not _is_word("v", match):
                        continue
                    if rule.is_beside or _is_free(span, taken):
                        seen.add((rule.name, *span))
                        taken.append(span)
                        yield Matched(prepared, rules, sentence, part, rule, match)


def _is_in_place(rule: Rule, sentence: Sentence, beside: tuple[str, str]) -> bool:
    before, after = beside
    if rule.within is not None and not rule.within.search(sentence.text):
        return False
    if rule.near is not None and not any(
        rule.near.search(text[:MOST_NEAR]) for text in (sentence.text, before[-MOST_NEAR:], after)
    ):
        return False
    return rule.follows is None or rule.follows.search(before) is not None


def _is_free(span: tuple[int, int], taken: Sequence[tuple[int, int]]) -> bool:
    start, end = span
    return all(end <= first or start >= last for first, last in taken)


def _is_word(group: str, match: re.Match[str]) -> bool:
    """Whether a short Chinese verb is a word of its own here: 爱 is none in 爱人."""
    if group not in match.re.groupindex or match.start(group) < 0:
        return True
    position = 0
    for word in segmenter().known_words(match.string):
        position += len(word)
        if position >= match.end(group):
            return position == match.end(group)
    return True


def _fact(matched: Matched) -> Fact | None:
    rule, match, rules = matched.rule, matched.match, matched.pack
    shown = _span(matched, "o")
    if shown is None:
        return None
    start, end = shown
    content = _tidy(matched.prepared.text[start:end])
    if not _SAYS_SOMETHING.search(content):
        return None
    kept = content
    if whole := _group(match, "k"):
        last = end if match.end(whole) <= match.end(_group(match, "o")) else 0
        last = last or _place(matched, match.end(whole))
        kept = _tidy(matched.prepared.text[_place(matched, match.start(whole)) : last])
    slot = _slot(rule, match)
    return Fact(
        category=rule.category,
        content=kept[:MAX_CONTENT],
        statement=_statement(matched)[:MAX_CONTENT],
        key=f"{rule.category}:{slug(slot)}" if slot else key_of(rule.category, content),
        full_slug=full_slug(slot or content),
        polarity=rule.polarity,
        speaker=Speaker.USER,
        confidence=rule.confidence * (HEDGED if rules.hedge.search(_around(matched)) else 1.0),
        rule=rule.name,
        language=rules.language,
        start=_place(matched, match.start()),
    )


def _group(match: re.Match[str], name: str) -> str:
    """The group of this name that took part: a pattern of two ways has ``o`` and ``o2``."""
    for group in (name, f"{name}2", f"{name}3"):
        if group in match.re.groupindex and match.start(group) >= 0:
            return group
    return ""


def _slot(rule: Rule, match: re.Match[str]) -> str:
    if not rule.slot:
        return ""
    noun = match["n"] if "n" in match.re.groupindex else None
    if noun is None:
        return rule.slot
    named = f"{rule.slot} {noun}"
    return named if noun.isascii() else key_of("", named).lstrip(":")


def _span(matched: Matched, group: str) -> tuple[int, int] | None:
    """Where a group is in the turn, without what trails behind it and up to what was blanked."""
    group = _group(matched.match, group)
    if not group:
        return None
    piece = _without_tail(matched.match[group], matched.pack)
    start = matched.match.start(group)
    if not piece:
        return None
    return _place(matched, start), _place(matched, start + len(piece))


def _place(matched: Matched, position: int) -> int:
    return matched.clause.place(position)


def _around(matched: Matched) -> str:
    """What stands close about the object, whose own words are nobody's doubt."""
    match, group = matched.match, _group(matched.match, "o")
    before = match.string[max(0, match.start() - NEAR) : match.start(group)]
    return f"{before} {match.string[match.end(group) : match.end() + NEAR // 4]}"


def _statement(matched: Matched) -> str:
    """The whole clause that says it, with the subject it was read with."""
    match, clause, rules = matched.match, matched.clause, matched.pack
    own = clause.text[clause.prefix :]
    begin = clause.prefix + _head(own[: max(0, match.start() - clause.prefix)], rules)
    end = begin + len(_without_tail(match.string[begin:], rules))
    if BLANK in match.string[begin : match.start()]:
        begin = match.start()
        end = begin + len(_without_tail(match.string[begin:], rules))
    text = _tidy(matched.prepared.text[_place(matched, begin) : _place(matched, end)])
    is_elided = clause.prefix and match.start() < clause.prefix
    return f"{rules.subject}{text}" if is_elided else text


def _head(before: str, rules: Pack) -> int:
    """How much of what stands before a match a statement leaves out."""
    length = 0
    while found := rules.drop.match(before, length):
        if found.end() == length:
            break
        length = found.end()
    return length


def _without_tail(text: str, rules: Pack) -> str:
    """Up to what was blanked out, without the politeness and punctuation at its end."""
    piece, before = text.split(BLANK)[0], ""
    while piece != before:
        before, piece = piece, rules.trim.sub("", piece).rstrip()
    return piece


def _tidy(text: str) -> str:
    """Whitespace as single spaces, and no punctuation at either end but what belongs together."""
    tidy = _SPACE.sub(" ", text).strip()
    while len(tidy) > 1 and _QUOTES.get(tidy[-1]) == tidy[0] and tidy[-1] not in tidy[1:-1]:
        tidy = tidy[1:-1].strip()
    while tidy and _is_loose(tidy):
        tidy = tidy[:-1]
    return tidy.lstrip(_OPENING)


def _is_loose(tidy: str) -> bool:
    last, rest = tidy[-1], tidy[:-1]
    if unicodedata.category(last) in _SYMBOLS:
        return True
    if last not in _EDGES:
        return False
    opener = _OPENERS.get(last) or _QUOTES.get(last)
    if opener == last:
        return rest.count(last) % 2 == 0
    return opener is None or opener not in rest


def _said_by_assistant(fact: Fact) -> Fact:
    return replace(
        fact, speaker=Speaker.ASSISTANT, confidence=round(fact.confidence * ASSISTANT_TRUST, 3)
    )


def _distinct(facts: Sequence[Fact]) -> list[Fact]:
    """One fact for each key, by category and place: the first of equals, the last where somebody
    took something back. Two that would only share a key get one each."""
    by_key: dict[str, Fact] = {}
    for fact in sorted(facts, key=lambda fact: (_ORDER[fact.category], fact.start)):
        earlier = by_key.get(fact.key)
        if earlier is None or _takes_back(earlier, fact):
            by_key[fact.key] = fact
        elif not _says_the_same(earlier, fact):
            by_key.setdefault(longer_key(fact), replace(fact, key=longer_key(fact)))
    return list(by_key.values())


def is_cut(fact: Fact) -> bool:
    """Whether the key holds less than the whole slug."""
    return len(fact.full_slug.rstrip("_")) > SLUG_LENGTH


def longer_key(fact: Fact) -> str:
    """A key of its own for a fact whose key another one has."""
    return f"{fact.key}_{digest(fact.content)}"


def _takes_back(earlier: Fact, fact: Fact) -> bool:
    return earlier.polarity is not fact.polarity and earlier.full_slug == fact.full_slug


def _says_the_same(one: Fact, other: Fact) -> bool:
    return normalize(one.content) == normalize(other.content)
