"""A retrieval as the Playground draws it: hits with bars, and the candidates' way by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy

from engine.types import Hit, Retrieval, Stage, StageEntry, Trace
from memory.models import Memory, Passage
from memory.services.degraded import note_text
from memory.services.retrieval import RetrievalView

MOST_CANDIDATES: Final = 60
STAGES: Final[Mapping[str, Promise]] = {
    "recent": pgettext_lazy("stage", "newest"),
    "keyword": pgettext_lazy("stage", "keyword"),
    "embed": pgettext_lazy("stage", "embed query"),
    "vector": pgettext_lazy("stage", "vector"),
    "fuse": pgettext_lazy("stage", "fuse"),
    "conversation": pgettext_lazy("stage", "conversation"),
    "priors": pgettext_lazy("stage", "priors"),
    "rerank": pgettext_lazy("stage", "rerank"),
    "floor": pgettext_lazy("stage", "relevance floor"),
    "match": pgettext_lazy("stage", "words it must hold"),
    "collapse": pgettext_lazy("stage", "one per memory"),
    "limit": pgettext_lazy("stage", "limit"),
    "budget": pgettext_lazy("stage", "budget"),
    "scope": pgettext_lazy("stage", "scope"),
    "index": pgettext_lazy("stage", "index"),
    "lists": pgettext_lazy("stage", "lists"),
}
DIGITS: Final = {"budget": 0, "fuse": 4, "conversation": 4, "priors": 4, "collapse": 4}
DROPPED: Final[Mapping[str, Promise]] = {
    "gone": gettext_lazy("no longer exists"),
    "same_memory": gettext_lazy("another piece of this memory ranks higher"),
    "limit": gettext_lazy("beyond the limit"),
    "budget": gettext_lazy("does not fit the budget"),
    "below_floor": gettext_lazy("below the relevance floor"),
    "match": gettext_lazy("does not hold the words it must"),
}


@dataclass(frozen=True, slots=True)
class Score:
    """One number beside a bar. ``best`` is the highest of its kind among the hits."""

    kind: str
    label: Promise
    rank: int | None
    value: float | None
    best: float
    digits: int


@dataclass(frozen=True, slots=True)
class ShownHit:
    """One ranked memory. ``running`` is the sum of tokens up to and with it."""

    hit: Hit
    memory: Memory
    scores: list[Score]
    running: int


@dataclass(frozen=True, slots=True)
class Cell:
    """What one stage did to one candidate; all empty when the stage never saw it."""

    rank: int | None = None
    score: float | None = None
    dropped: str = ""
    digits: int = 3


@dataclass(slots=True)
class Candidate:
    """One passage and its way through the stages."""

    passage_id: int
    memory: Memory | None
    ordinal: int
    is_hit: bool
    cells: list[Cell] = field(default_factory=list)

    @property
    def dropped(self) -> str:
        """Why it did not come back; empty for a hit."""
        return next((cell.dropped for cell in self.cells if cell.dropped), "")


@dataclass(frozen=True, slots=True)
class ShownStage:
    """One column of the trace."""

    name: str
    label: str
    took_ms: float
    count: int
    dropped: int
    note: str


def hits(view: RetrievalView) -> list[ShownHit]:
    """The hits in order, with scores relative to the best of each kind."""
    found = [hit for hit in view.retrieval.hits if hit.passage.parent in view.memories]
    best = {name: _best(found, name) for name in ("keyword", "vector", "fused", "rerank")}
    shown: list[ShownHit] = []
    running = 0
    for hit in found:
        running += hit.tokens
        memory = view.memories[hit.passage.parent]
        shown.append(ShownHit(hit, memory, _scores(hit, best), running))
    return shown


def stages(retrieval: Retrieval) -> list[ShownStage]:
    """The stages that ran, in order."""
    return [_shown(stage) for stage in (retrieval.trace.stages if retrieval.trace else ())]


def candidates(retrieval: Retrieval) -> list[Candidate]:
    """Every candidate, hits first, with one cell for each stage that listed any."""
    if retrieval.trace is None:
        return []
    columns = [stage for stage in retrieval.trace.stages if stage.entries]
    by_stage = [(stage.name, {e.passage_id: e for e in stage.entries}) for stage in columns]
    order = _order(retrieval, retrieval.trace)[:MOST_CANDIDATES]
    rows = Passage.objects.filter(pk__in=order).select_related("memory")
    passages = {row.pk: row for row in rows}
    returned = {hit.passage.id for hit in retrieval.hits}
    found: list[Candidate] = []
    for passage_id in order:
        row = passages.get(passage_id)
        cells = [_cell(name, entries.get(passage_id)) for name, entries in by_stage]
        memory, ordinal = (row.memory, row.ordinal) if row else (None, 0)
        found.append(Candidate(passage_id, memory, ordinal, passage_id in returned, cells))
    return found


def left_out(found: list[Candidate]) -> list[Candidate]:
    """Candidates that only the budget kept out."""
    return [c for c in found if c.memory is not None and c.cells and c.cells[-1].dropped]


def nearest(retrieval: Retrieval, found: list[Candidate]) -> list[tuple[Candidate, float | None]]:
    """What came closest to the relevance floor when nothing reached it, with its cosine."""
    shown = {candidate.passage_id: candidate for candidate in found if candidate.memory}
    near = (hit for hit in retrieval.nearest if hit.passage.id in shown)
    return [(shown[hit.passage.id], hit.vector_score) for hit in near]


def _order(retrieval: Retrieval, trace: Trace) -> list[int]:
    """Hits first, then by the best place any later stage gave."""
    order = dict.fromkeys(hit.passage.id for hit in retrieval.hits)
    for stage in reversed(trace.stages):
        order |= dict.fromkeys(e.passage_id for e in stage.entries if e.passage_id not in order)
    return list(order)


def _shown(stage: Stage) -> ShownStage:
    dropped = sum(bool(entry.dropped) for entry in stage.entries)
    label = str(STAGES.get(stage.name, stage.name))
    return ShownStage(
        stage.name, label, stage.took_ms, len(stage.entries), dropped, note_text(stage.note)
    )


def _cell(name: str, entry: StageEntry | None) -> Cell:
    if entry is None:
        return Cell()
    dropped = str(DROPPED.get(entry.dropped, entry.dropped))
    # The score of the budget stage is a number of tokens.
    return Cell(entry.rank, entry.score, dropped, DIGITS.get(name, 3))


def _best(found: list[Hit], name: str) -> float:
    values = (getattr(hit, f"{name}_score") for hit in found)
    return max((value for value in values if value is not None), default=0.0)


def _scores(hit: Hit, best: Mapping[str, float]) -> list[Score]:
    shown = [
        Score("keyword", KEYWORD, hit.keyword_rank, hit.keyword_score, best["keyword"], 3),
        Score("vector", VECTOR, hit.vector_rank, hit.vector_score, best["vector"], 3),
        Score("fused", FUSED, None, hit.fused_score, best["fused"], 4),
    ]
    if hit.rerank_score is not None:
        shown.append(Score("rerank", RERANK, None, hit.rerank_score, best["rerank"], 3))
    return shown


KEYWORD: Final = pgettext_lazy("score", "keyword")
VECTOR: Final = pgettext_lazy("score", "vector")
FUSED: Final = pgettext_lazy("score", "fused")
RERANK: Final = pgettext_lazy("score", "rerank")
