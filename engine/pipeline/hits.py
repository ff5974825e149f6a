"""From an order of passages to hits: collapse, floor, rerank, limit, budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.errors import EngineError
from engine.pipeline.run import Run
from engine.rank.budget import fit
from engine.text.tokenize import analyzer
from engine.types import Candidate, Degraded, Hit, Mode, Passage, StageEntry, Tier

LOAD_BATCH = 25
"""How many passages are read at a time; most retrievals want no more than the first ones."""

TRACED = 50
RERANK_DEPTH = 50
EVIDENCE_HITS = 5
EVIDENCE_SHARE = 0.5
NEAREST = 3


def collapsed(run: Run, tier: Tier, ordered: Sequence[tuple[int, float]]) -> list[Hit]:
    """One hit for each parent: its best passage. Passages that are gone are dropped.

    Reads passages in batches and stops when there are enough; a trace shows what became of some
    more. Those that were not read are beyond the limit anyway.
    """
    least = RERANK_DEPTH if run.tiers.reranker else TRACED * run.query.trace
    wanted = max(run.query.limit, least)
    hits: list[Hit] = []
    entries: list[StageEntry] = []
    seen: dict[str, int] = {}
    for start in range(0, len(ordered), LOAD_BATCH):
        if len(hits) >= wanted:
            if run.query.trace:
                entries.extend(StageEntry(key, dropped="limit") for key, _score in ordered[start:])
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


def above_floor(run: Run, hits: list[Hit]) -> tuple[list[Hit], list[Hit]]:
    """All hits, or none and the nearest, when nothing in the store is about the query.

    That is so when even the nearest vector lies below the floor, and none of the first hits holds
    half of the query's words.
    """
    floor = run.tiers.floor
    if floor is None or not run.vector or run.query.mode is Mode.RECENT:
        return hits, []
    nearest = max(candidate.score for candidate in run.vector.values())
    if nearest >= floor or any(_holds_words(run, hit) for hit in hits[:EVIDENCE_HITS]):
        run.stage("floor", (), note=f"{nearest:.3f} / {floor:.3f}")
        return hits, []
    entries = (StageEntry(h.passage.id, score=h.vector_score, dropped="below_floor") for h in hits)
    run.stage("floor", entries, note=f"{nearest:.3f} / {floor:.3f}")
    return [], hits[:NEAREST]


def _holds_words(run: Run, hit: Hit) -> bool:
    terms = run.tiers.keyword.terms(run.query.text)
    text = f"{hit.passage.title}\n{hit.passage.body}\n{hit.passage.meta}"
    held = set(analyzer("search").document_terms(text)).intersection(terms)
    return bool(terms) and len(held) >= EVIDENCE_SHARE * len(terms)


def reranked(run: Run, hits: list[Hit]) -> list[Hit]:
    """The first hits in the order of the reranker; as they were when it fails, which is told."""
    reranker = run.tiers.reranker
    if run.tiers.rerank_off is not None:
        run.degraded.append(run.tiers.rerank_off)
        run.stage("rerank", (), note=run.tiers.rerank_off.code)
    if reranker is None or len(hits) < 2 or run.query.mode is Mode.RECENT:
        return hits
    first, rest = hits[:RERANK_DEPTH], hits[RERANK_DEPTH:]
    by_id = {hit.passage.id: hit for hit in first}
    pairs = [
        (Candidate(hit.passage.id, rank, hit.score), hit.passage)
        for rank, hit in enumerate(first, start=1)
    ]
    try:
        found = reranker.rerank(run.query.text, pairs)
    except EngineError as error:
        run.degraded.append(Degraded("rerank", error.code, str(error)))
        run.stage("rerank", (), note=error.code)
        return hits
    run.reranker = reranker.name
    run.stage("rerank", (StageEntry(c.passage_id, c.rank, c.score) for c in found), reranker.name)
    ordered = [replace(by_id[c.passage_id], score=c.score, rerank_score=c.score) for c in found]
    return [*ordered, *rest]


def limited(run: Run, hits: list[Hit]) -> list[Hit]:
    """No more hits than asked for."""
    kept, dropped = hits[: run.query.limit], hits[run.query.limit :]
    run.stage("limit", (StageEntry(hit.passage.id, dropped="limit") for hit in dropped))
    return kept


def within_budget(run: Run, hits: list[Hit]) -> list[Hit]:
    """Hits in order while their tokens fit, ranked from 1."""
    places = {
        place.index: place for place in fit([hit.tokens for hit in hits], run.query.max_tokens)
    }
    kept: list[Hit] = []
    entries: list[StageEntry] = []
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


def _hit(run: Run, tier: Tier, passage: Passage, score: float) -> Hit:
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
        fused_score=score if run.is_fused else None,
    )
