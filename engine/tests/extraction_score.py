"""Precision and recall of extraction over the labelled turns of a language."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.extract.facts import Fact, Speaker
from engine.extract.screening import read_turn
from engine.text.normalize import normalize

LABELS = Path(__file__).with_name("extraction_labels")


@dataclass(frozen=True, slots=True)
class Score:
    """How the facts found compare with those that were labelled."""

    right: int
    found: int
    labelled: int

    @property
    def precision(self) -> float:
        """Share of the facts found that were labelled so."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Share of the labelled facts that were found."""
        return self.right / self.labelled if self.labelled else 1.0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.right + other.right, self.found + other.found, self.labelled + other.labelled
        )


def turns(language: str, sets: str = "ab") -> list[dict[str, Any]]:
    """The labelled turns of a language, of the sets whose letters are given."""
    return [
        turn
        for name in sets
        for turn in json.loads((LABELS / f"{language}_{name}.json").read_text(encoding="utf-8"))
    ]


def facts_of(turn: Mapping[str, Any]) -> list[Fact]:
    """What would be stored of a turn without asking anybody."""
    return list(read_turn(turn["text"], speaker=Speaker(turn["role"])).stored)


def score(
    labelled: Sequence[Mapping[str, Any]],
    facts: Callable[[Mapping[str, Any]], Sequence[Fact]] = facts_of,
) -> Score:
    """The score over turns: each label is met by one fact at most."""
    total = Score(0, 0, 0)
    for turn in labelled:
        found = list(facts(turn))
        right = 0
        open_labels = list(turn["facts"])
        for fact in found:
            met = next((label for label in open_labels if is_met(label, fact)), None)
            if met is not None:
                open_labels.remove(met)
                right += 1
        total += Score(right, len(found), len(turn["facts"]))
    return total


def is_met(label: Mapping[str, Any], fact: Fact) -> bool:
    """Whether a fact says what a label wants, in the clause that says it."""
    said = normalize(fact.statement + " " + fact.content)
    return bool(
        fact.category.value == label["category"]
        and fact.polarity.value == label["polarity"]
        and fact.speaker.value == label["speaker"]
        and all(normalize(part) in said for part in label["contains"])
    )
