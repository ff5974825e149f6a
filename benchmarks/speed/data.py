"""The data of one size: memories with their vectors, and the questions asked about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.speed.text import BIGGEST, SMALL, Note, notes, question
from benchmarks.speed.vectors import DIM, block, near
from engine.types import Matrix, Vector


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured."""

    passages: int
    questions: int
    share: float
    hnsw_up_to: int
    load_s: float
    """Seconds of each measurement of throughput."""
    is_brief: bool = False
    """Without clients whose uses are counted, and without a small owner."""

    @property
    def biggest(self) -> int:
        """How many memories the biggest owner has; they come first."""
        return round(self.passages * self.share)


@dataclass(slots=True)
class Data:
    """What engines are filled with, and asked. ``questions`` are about the biggest owner's
    memories, ``small`` about those of a small owner; ``known`` has the vectors of both."""

    plan: Plan
    vectors: Matrix
    questions: list[str] = field(default_factory=list)
    small: list[str] = field(default_factory=list)
    known: dict[str, Vector] = field(default_factory=dict)
    text_bytes: int = 0

    @classmethod
    def empty(cls, plan: Plan) -> Data:
        """Nothing yet."""
        return cls(plan, np.empty((plan.passages, DIM), np.float32))

    def blocks(self) -> Iterator[list[Note]]:
        """Every memory, block by block; the vectors of a block are there when it comes."""
        for made in notes(self.plan.passages, self.plan.share):
            first = made[0].number
            self.vectors[first : first + len(made)] = block(first, len(made))
            self.text_bytes += sum(len(note.record["content"].encode()) for note in made)
            self._ask(made)
            yield made

    def _ask(self, made: list[Note]) -> None:
        step = max(1, self.plan.biggest // self.plan.questions)
        for note in made:
            if note.owner == BIGGEST and note.number % step == 0:
                self._add(self.questions, note)
            elif note.owner == SMALL:
                self._add(self.small, note)

    def _add(self, questions: list[str], note: Note) -> None:
        text = question(note, note.number // 2)
        if text not in self.known and len(questions) < self.plan.questions:
            questions.append(text)
            vector = self.vectors[note.number : note.number + 1]
            self.known[text] = near(vector, note.number)[0]
