"""The area of extraction: facts of a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.extract.extractor import extract
from engine.extract.facts import Fact, Speaker
from engine.text.normalize import normalize
from memory.cases.registry import Case, CaseFile, adapter, wanted


@adapter("extraction")
def extraction(case: Case, _file: CaseFile) -> Any:
    """The seed's shape of each fact; for a case that is to be beaten, what was wanted of us when
    the facts are so, else the facts."""
    want = wanted(case)
    speaker = want.get("speaker", "user") if isinstance(want, dict) else "user"
    facts = extract(case["input"]["text"], speaker=Speaker(speaker)).facts
    if case.get("verdict") != "beat":
        return [_seed_shape(fact) for fact in facts]
    found = [_our_shape(fact) for fact in facts]
    return want if _is_ours(want, facts) else {"facts": found}


def _seed_shape(fact: Fact) -> dict[str, str]:
    return {
        "category": fact.category.value,
        "type": fact.type.value,
        "key": fact.key,
        "content": fact.content,
    }


def _our_shape(fact: Fact) -> dict[str, str]:
    return {**_seed_shape(fact), "polarity": fact.polarity.value, "speaker": fact.speaker.value}


def _is_ours(want: Mapping[str, Any], facts: tuple[Fact, ...]) -> bool:
    """Whether facts are what a case wants: ``facts`` in order, or ``count``; ``or`` is another
    list that will do, and ``optional`` lets nothing at all do as well."""
    if want.get("optional") and not facts:
        return True
    if "or" in want and _are(want["or"], facts):
        return True
    if "count" in want:
        return bool(len(facts) == want["count"])
    return _are(want["facts"], facts) and all(_keys_are_right(want, fact) for fact in facts)


def _are(wanted_facts: list[Mapping[str, Any]], facts: tuple[Fact, ...]) -> bool:
    return len(wanted_facts) == len(facts) and all(map(_is, wanted_facts, facts))


def _is(want: Mapping[str, Any], fact: Fact) -> bool:
    shape = _our_shape(fact)
    content = normalize(fact.content)
    is_same = all(shape[name] == want[name] for name in shape if name in want)
    has_all = all(normalize(part) in content for part in _listed(want.get("contains", ())))
    has_other = any(normalize(part) in content for part in _listed(want.get("excludes", ())))
    return is_same and has_all and not has_other


def _listed(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _keys_are_right(want: Mapping[str, Any], fact: Fact) -> bool:
    if fact.key == want.get("key_not"):
        return False
    other = want.get("key_differs_from")
    return other is None or all(fact.key != found.key for found in extract(other).facts)
