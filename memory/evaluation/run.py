"""Loads a set through the product's services and asks its questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.keyword.limits import shorten_query
from engine.types import Mode
from memory import jobs, wiring
from memory.evaluation.dataset import Dataset, EvalQuery
from memory.evaluation.measures import ndcg, percentile, recall, reciprocal_rank
from memory.evaluation.vector_cache import DiskCachedSource
from memory.models import Job
from memory.principal import SYSTEM
from memory.services import embedding, exchange
from memory.services.retrieval import RetrieveRequest, retrieve

DEPTH: Final = 20
MODES: Final = ("keyword", "vector", "hybrid")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Answers:
    """The keys found for each question of one mode, best first, and how long each took."""

    ranked: Mapping[str, Sequence[str]]
    took_ms: Sequence[float]


def load(dataset: Dataset, *, with_vectors: bool, cache: Path | None, say: Say) -> None:
    """Import the corpus; each document becomes a memory of its owner, and vectors are filled."""
    if with_vectors and cache is not None:
        wiring.wrap_source(lambda source: DiskCachedSource(source, cache))
    records = [_record(row) for row in dataset.corpus]
    report = exchange.import_records(SYSTEM, records, owner=None)
    for problem in report.problems:
        say(f"document {problem.place} is left out: {problem.message}")
    say(f"{report.total} documents in {report.seconds:.1f} s ({report.per_second:.0f} a second)")
    if not with_vectors:
        return
    started = time.perf_counter()
    job = Job.objects.filter(dedupe_key=embedding.DEDUPE, state__in=Job.ACTIVE).get()
    jobs.run(job.pk, {"reindex": embedding.fill}, role="command")
    job.refresh_from_db()
    if job.state != Job.State.SUCCEEDED:
        raise ValueError(f"the vectors could not be made: {job.error_code} {job.message}")
    seconds = time.perf_counter() - started
    say(f"{job.result['processed']} vectors in {seconds:.1f} s")


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    # Ids of different owners may be equal; the key is unique within one owner. Some public sets
    # have documents that are a title only.
    record = {"title": "", **row, "key": str(row["id"])}
    if not str(row.get("text", "")).strip():
        record["text"] = record["title"]
    if row.get("owner") is not None:
        record["owner"] = str(row["owner"])
    return record


def ask(dataset: Dataset, mode: str, *, say: Say) -> dict[str, Any]:
    """Ask every question in one mode and measure."""
    ranked: dict[str, list[str]] = {}
    took_ms: list[float] = []
    for place, query in enumerate(dataset.queries, start=1):
        started = time.perf_counter()
        ranked[query.id] = _ranked(query, mode)
        took_ms.append((time.perf_counter() - started) * 1000)
        if place % 500 == 0:
            say(f"{mode}: {place} of {len(dataset.queries)}")
    return _result(dataset, mode, Answers(ranked, took_ms))


def _ranked(query: EvalQuery, mode: str) -> list[str]:
    request = RetrieveRequest(
        query=shorten_query(query.text),
        mode=Mode(mode),
        limit=DEPTH,
        max_tokens=10**9,
        owner=query.owner,
        all_owners=query.owner is None,
    )
    view = retrieve(SYSTEM, request, purpose="evaluate")
    hits = view.retrieval.hits
    return [view.memories[hit.passage.parent].key for hit in hits]


def _result(dataset: Dataset, mode: str, answers: Answers) -> dict[str, Any]:
    pairs = [(answers.ranked[query.id], dataset.gains[query.id]) for query in dataset.queries]
    count = len(pairs)
    result: dict[str, Any] = {
        "set": dataset.name,
        "mode": mode,
        "documents": len(dataset.corpus),
        "queries": count,
    }
    for depth in (1, 5, 10, 20):
        result[f"recall@{depth}"] = _mean([recall(found, gains, depth) for found, gains in pairs])
    result["ndcg@10"] = _mean([ndcg(found, gains) for found, gains in pairs])
    result["mrr@10"] = _mean([reciprocal_rank(found, gains) for found, gains in pairs])
    result["p50_ms"] = round(percentile(answers.took_ms, 0.5), 2)
    result["p95_ms"] = round(percentile(answers.took_ms, 0.95), 2)
    return result


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
