"""The pipeline: tiers, fusion, collapse, limit, budget, and the account of what ran.

The one retrieval of the product: chat, preview and evaluation all call ``retrieve``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.errors import EngineError, InvalidQuery
from engine.protocols import EmbeddingSource, KeywordIndex, PassageSource, VectorStore
from engine.rank.budget import fit
from engine.rank.rrf import fuse
from engine.rank.scores import combine
from engine.types import (
    Candidate,
    Degraded,
    Fusion,
    Hit,
    Mode,
    Passage,
    Purpose,
    Query,
    Retrieval,
    Scope,
    Stage,
    StageEntry,
    Tier,
    Trace,
)

DEPTH = 100
"""How many candidates each list may bring to the fusion (both seeds)."""

LOAD_BATCH = 25
"""How many passages are read at a time; most retrievals want no more than the first ones."""


@dataclass(frozen=True, slots=True)
class Tiers:
    """What a retrieval may use. A missing vector half says why in ``vector_off``."""

    keyword: KeywordIndex
    passages: PassageSource
    source: EmbeddingSource | None = None
    store: VectorStore | None = None
    vector_off: Degraded | None = None
    notes: tuple[Degraded, ...] = ()
    fusion: Fusion = Fusion.SCORES
    rrf_k: int = 60
    depth: int = DEPTH


class _Run:
    """The state of one retrieval while its stages work."""

    def __init__(self, query: Query, scope: Scope, tiers: Tiers) -> None:
        self.query, self.scope, self.tiers = query, scope, tiers
        self.stages: list[Stage] = []
        self.degraded: list[Degraded] = []
        self.keyword: dict[int, Candidate] = {}
        self.vector: dict[int, Candidate] = {}
        self.used_vector = False
        self._started = time.perf_counter()
        self._mark = self._started

    def stage(self, name: str, entries: Sequence[StageEntry], note: str = "") -> None:
        """Close a stage: everything since the last one took its time."""
        moment = time.perf_counter()
        took_ms, self._mark = (moment - self._mark) * 1000, moment
        kept = tuple(entries) if self.query.trace else ()
        self.stages.append(Stage(name, round(took_ms, 3), kept, note))

    @property
    def took_ms(self) -> float:
        return round((time.perf_counter() - self._started) * 1000, 3)


def retrieve(query: Query, scope: Scope, tiers: Tiers) -> Retrieval:
    """Find the passages of a scope that answer a query, best first, within the budget.

    A tier that fails or is off is left out and named in ``degraded``; a query without any word
    finds nothing. Never raises for what a person types.
    """
    run = _Run(query, scope, tiers)
    tier, ordered = _ordered(run)
    hits = _within_budget(run, _limited(run, _collapsed(run, tier, ordered)))
    trace = None
    if query.trace:
        terms = tiers.keyword.terms(query.text) if query.text.strip() else ()
        trace = Trace(terms, tuple(run.stages))
    source = tiers.source if run.used_vector else None
    return Retrieval(
        query=query,
        hits=tuple(hits),
        tier=tier,
        total_tokens=sum(hit.tokens for hit in hits),
        degraded=tuple(run.degraded),
        embedding_source=source.name if source else None,
        embedding_model=source.model if source else None,
        vector_store=tiers.store.name if run.used_vector and tiers.store else None,
        fusion=tiers.fusion if tier is Tier.HYBRID else None,
        took_ms=run.took_ms,
        trace=trace,
    )


def _ordered(run: _Run) -> tuple[Tier, list[tuple[int, float]]]:
    """Run the lists the mode asks for; fall back from vectors to keywords when they are off."""
    mode = run.query.mode
    if mode is Mode.RECENT or not run.query.text.strip():
        return Tier.RECENT, _recent(run)
    vector_ok = mode in (Mode.VECTOR, Mode.HYBRID) and _search_vectors(run)
    if mode is Mode.VECTOR and vector_ok:
        return Tier.VECTOR, [(c.passage_id, c.score) for c in run.vector.values()]
    _search_keywords(run)
    if not vector_ok:
        return Tier.KEYWORD, [(c.passage_id, c.score) for c in run.keyword.values()]
    return Tier.HYBRID, _fused(run)


def _recent(run: _Run) -> list[tuple[int, float]]:
    ids = run.tiers.passages.recent(run.scope, max(run.query.limit, run.tiers.depth))
    ordered = [(passage_id, 1.0 / rank) for rank, passage_id in enumerate(ids, start=1)]
    run.stage("recent", [StageEntry(i, rank) for rank, i in enumerate(ids, start=1)])
    return ordered


def _search_keywords(run: _Run) -> None:
    tiers, query = run.tiers, run.query
    try:
        found = tiers.keyword.search(
            query.text, scope=run.scope, limit=tiers.depth, match=query.match
        )
    except InvalidQuery as error:
        run.stage("keyword", (), note=error.code)
        run.degraded.append(Degraded("keyword", error.code, str(error)))
        return
    except EngineError as error:
        run.stage("keyword", (), note=error.code)
        run.degraded.append(Degraded("keyword", error.code, str(error)))
        return
    run.keyword = {candidate.passage_id: candidate for candidate in found}
    run.stage("keyword", _entries(found))


def _search_vectors(run: _Run) -> bool:
    """Whether the vector half ran; its candidates are in ``run.vector``."""
    tiers = run.tiers
    if tiers.source is None or tiers.store is None:
        reason = tiers.vector_off or Degraded("vector", "off", "semantic search is off")
        run.degraded.append(reason)
        run.stage("vector", (), note=reason.code)
        return False
    try:
        vector = tiers.source.embed([run.query.text], purpose=Purpose.QUERY)[0]
        run.stage("embed", ())
        found = tiers.store.search(vector, scope=run.scope, limit=tiers.depth)
    except EngineError as error:
        run.degraded.append(Degraded("vector", error.code, str(error)))
        run.stage("vector", (), note=error.code)
        return False
    run.vector = {candidate.passage_id: candidate for candidate in found}
    run.used_vector = True
    run.degraded.extend(tiers.notes)
    run.stage("vector", _entries(found))
    return True


def _fused(run: _Run) -> list[tuple[int, float]]:
    if run.tiers.fusion is Fusion.RRF:
        ordered = fuse([list(run.vector), list(run.keyword)], k=run.tiers.rrf_k)
        note = f"rrf k={run.tiers.rrf_k}"
    else:
        ordered = combine(list(run.vector.values()), list(run.keyword.values()))
        note = "scores"
    entries = [StageEntry(i, rank, score) for rank, (i, score) in enumerate(ordered, start=1)]
    run.stage("fuse", entries, note=note)
    return ordered


def _collapsed(run: _Run, tier: Tier, ordered: Sequence[tuple[int, float]]) -> list[Hit]:
    """One hit for each parent: its best passage. Passages that are gone are dropped.

    Reads passages in batches and stops when there are enough, unless a trace wants them all.
    """
    hits: list[Hit] = []
    entries: list[StageEntry] = []
    seen: dict[str, int] = {}
    for start in range(0, len(ordered), LOAD_BATCH):
        if len(hits) >= run.query.limit and not run.query.trace:
            break
        batch = ordered[start : start + LOAD_BATCH]
        passages = run.tiers.passages.load([passage_id for passage_id, _score in batch])
        for passage_id, score in batch:
            passage = passages.get(passage_id)
            if passage is None or passage.is_archived:
                entries.append(StageEntry(passage_id, dropped="gone"))
            elif passage.parent in seen:
                entries.append(StageEntry(passage_id, seen[passage.parent], dropped="same_memory"))
            else:
                seen[passage.parent] = len(hits) + 1
                hits.append(_hit(run, tier, passage, score))
                entries.append(StageEntry(passage_id, len(hits), score))
    run.stage("collapse", entries)
    return hits


def _hit(run: _Run, tier: Tier, passage: Passage, score: float) -> Hit:
    keyword, vector = run.keyword.get(passage.id), run.vector.get(passage.id)
    return Hit(
        passage=passage,
        rank=0,
        tier=tier,
        score=score,
        tokens=passage.parent_tokens,
        keyword_rank=keyword.rank if keyword else None,
        keyword_score=keyword.score if keyword else None,
        vector_rank=vector.rank if vector else None,
        vector_score=vector.score if vector else None,
        fused_score=score if tier is Tier.HYBRID else None,
    )


def _limited(run: _Run, hits: list[Hit]) -> list[Hit]:
    kept, dropped = hits[: run.query.limit], hits[run.query.limit :]
    run.stage("limit", [StageEntry(hit.passage.id, dropped="limit") for hit in dropped])
    return kept


def _within_budget(run: _Run, hits: list[Hit]) -> list[Hit]:
    fitted = fit([hit.tokens for hit in hits], run.query.max_tokens)
    kept: list[Hit] = []
    entries: list[StageEntry] = []
    places = {place.index: place for place in fitted}
    for index, hit in enumerate(hits):
        place = places.get(index)
        if place is None:
            entries.append(StageEntry(hit.passage.id, dropped="budget"))
            continue
        rank, tokens = len(kept) + 1, place.tokens
        kept.append(replace(hit, rank=rank, tokens=tokens, is_truncated=place.is_truncated))
        entries.append(StageEntry(hit.passage.id, rank, float(tokens)))
    run.stage("budget", entries)
    return kept


def _entries(found: Sequence[Candidate]) -> list[StageEntry]:
    return [StageEntry(c.passage_id, c.rank, c.score) for c in found]
