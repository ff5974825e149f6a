"""Reads a data set: ``corpus.jsonl``, ``queries.jsonl``, ``qrels.tsv`` (TREC-like, with header)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class EvalQuery:
    """One question; ``owner`` means: search only inside that owner."""

    id: str
    text: str
    owner: str | None


@dataclass(frozen=True, slots=True)
class Dataset:
    """A set: records of the corpus, questions, and the gain of each relevant document."""

    name: str
    corpus: list[dict[str, Any]]
    queries: list[EvalQuery]
    gains: Mapping[str, Mapping[str, float]]


def read(folder: Path) -> Dataset:
    """Read a set. Raises ``OSError`` for missing files, ``ValueError`` for broken ones."""
    gains: dict[str, dict[str, float]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            query_id, document_id, score = line.rstrip("\n").split("\t")
            if float(score) > 0:
                gains.setdefault(query_id, {})[document_id] = float(score)
    queries = [
        EvalQuery(str(row["id"]), row["text"], str(row["owner"]) if row.get("owner") else None)
        for row in _rows(folder / "queries.jsonl")
    ]
    return Dataset(
        name=folder.resolve().name,
        corpus=list(_rows(folder / "corpus.jsonl")),
        queries=[query for query in queries if query.id in gains],
        gains=gains,
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)
