"""Whether a match is a fact about the speaker, or only looks like one."""

from __future__ import annotations

import re
from typing import Final

from engine.extract.clauses import Clause, Sentence
from engine.extract.packs.reading import Guard, Pack, Rule

AROUND: Final = 600
"""Characters of a sentence on either side of a match in which a guard looks."""
MOST_BEFORE: Final = 250
"""Characters before a match beyond which it is taken for a part of something larger."""


def held_back(
    pack: Pack, sentence: Sentence, clause: Clause, rule: Rule, match: re.Match[str]
) -> str:
    """The name of the guard that holds a match back; empty when it is a fact."""
    at = clause.place(match.start()) - sentence.start
    seen = {
        "sentence": sentence.text[max(0, at - AROUND) : at + AROUND],
        "clause": clause.text[clause.prefix :],
        "before": sentence.text[max(0, at - AROUND) : at],
        "object": object_of(match).strip(),
        "match": match[0],
    }
    for guard in pack.guards:
        if _holds(guard, rule, seen):
            return guard.name
    before = clause.text[clause.prefix : match.start()]
    return "embedded" if before.strip() and not _may_stand_before(before, pack) else ""


def object_of(match: re.Match[str]) -> str:
    """The object of a match, in whichever branch it stands."""
    groups = (match[name] for name in ("o", "o2", "o3") if name in match.re.groupindex)
    return next(filter(None, groups), "")


def _may_stand_before(text: str, pack: Pack) -> bool:
    return len(text) <= MOST_BEFORE and pack.lead_in.fullmatch(text) is not None


def _holds(guard: Guard, rule: Rule, seen: dict[str, str]) -> bool:
    if guard.categories and rule.category.value not in guard.categories:
        return False
    if (guard.of_bare and not rule.is_bare) or guard.name in rule.despite:
        return False
    text = seen[guard.scope]
    if not guard.pattern.search(text):
        return False
    return guard.unless is None or not guard.unless.search(text)
