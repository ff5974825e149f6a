"""Whether keyword search ranks alike on every database: nDCG@10, recall@10 and rank correlation.

    python -m benchmarks.keyword_agreement FOLDER …

takes data sets in the format of ``manage.py evaluate``. The measure is what SQLite serves, postings
in memory, which like those of Postgres count within an owner; beside it stand FTS5, which counts
over all, the postings of plain Postgres, and pg_textsearch, asked for every question it may be.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from engine import scope_sql
from engine.errors import InvalidQuery
from engine.keyword.fts5 import Fts5Index
from engine.keyword.limits import shorten_query
from engine.keyword.part import Limits
from engine.keyword.pg_textsearch import INSTALL, PgTextsearchIndex
from engine.keyword.postgres import PostgresIndex
from engine.keyword.postings import PostingsIndex
from engine.postgres import PostgresConnection
from engine.protocols import KeywordIndex
from engine.testing import postgres_server
from engine.text.tokenize import analyzer
from engine.types import Passage, PassageKind, Scope
from memory.evaluation.dataset import Dataset, EvalQuery, read
from memory.evaluation.measures import ndcg, recall

DEPTH = 20
QUESTIONS = 200
"""Of a set with more, so many at even distances."""
BATCH = 500


class Asked(PgTextsearchIndex):
    """The extension answers whenever it may."""

    many_postings = 0
    least_share = 0.0


def main() -> None:
    """Measure every folder that is named."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server.running("textsearch"))
        raw = stack.enter_context(psycopg.connect(server.url(), autocommit=True))
        database = PostgresConnection(raw)
        database.execute(INSTALL)
        # So small a set would otherwise be scored row by row, without the index.
        database.execute("SET enable_seqscan = off")
        for folder in map(Path, sys.argv[1:]):
            whole = read(folder)
            step = max(1, len(whole.queries) // QUESTIONS)
            compare(replace(whole, queries=whole.queries[::step]), database)


def compare(dataset: Dataset, database: PostgresConnection) -> None:
    """One set on every index."""
    file = sqlite3.connect(":memory:", isolation_level=None)
    cut = analyzer("search")
    file.execute(scope_sql.CREATE_CHANGES)
    fts5 = Fts5Index(lambda: file, analyzer=cut, owns_scope=True)
    indexes: tuple[KeywordIndex, ...] = (
        PostingsIndex(fts5, limits=Limits(built_at_once=10**9)),
        fts5,
        PostgresIndex(lambda: database, analyzer=cut, table="plain", owns_scope=True),
        Asked(lambda: database, analyzer=cut, table="asked", owns_scope=True),
    )
    owners: dict[str | None, int] = {}
    passages = list(_passages(dataset, owners))
    measured: list[list[str]] = []
    for index in indexes:
        index.clear()
        for start in range(0, len(passages), BATCH):
            index.upsert(passages[start : start + BATCH])
        found = [_found(index, query, owners) for query in dataset.queries]
        named = [[str(dataset.corpus[number - 1]["id"]) for number in ids] for ids in found]
        pairs = [(ids, dataset.gains[q.id]) for ids, q in zip(named, dataset.queries, strict=True)]
        quality = statistics.fmean(ndcg(ids, gains) for ids, gains in pairs)
        recalled = statistics.fmean(recall(ids, gains, 10) for ids, gains in pairs)
        measured = measured or named
        alike = statistics.fmean(map(correlation, named, measured))
        print(
            f"{dataset.name} {index.name}: nDCG@10 {quality:.4f}, recall@10 {recalled:.4f}, "
            f"rank correlation {alike:.4f}",
            flush=True,
        )


def correlation(found: Sequence[str], expected: Sequence[str]) -> float:
    """Spearman's, over what either list has; what one lacks stands behind its last place."""
    names = list(dict.fromkeys([*expected, *found]))
    if len(names) < 2:
        return float(list(found) == list(expected))
    ranks = [
        [places.index(name) if name in places else len(places) for name in names]
        for places in (list(found), list(expected))
    ]
    if len(set(ranks[0])) == 1 or len(set(ranks[1])) == 1:
        return float(ranks[0] == ranks[1])
    return statistics.correlation(*ranks)


def _passages(dataset: Dataset, owners: dict[str | None, int]) -> Iterator[Passage]:
    for number, row in enumerate(dataset.corpus, start=1):
        name = _owner(row)
        yield Passage(
            id=number,
            kind=PassageKind.MEMORY,
            parent=str(row["id"]),
            ordinal=0,
            owner=owners.setdefault(name, len(owners) + 1),
            title=row.get("title") or "",
            body=row["text"],
            meta="",
            text_hash="",
            parent_tokens=0,
        )


def _owner(row: dict[str, Any]) -> str | None:
    return str(row["owner"]) if row.get("owner") is not None else None


def _found(index: KeywordIndex, query: EvalQuery, owners: dict[str | None, int]) -> list[int]:
    within = None if query.owner is None else frozenset({owners[query.owner]})
    scope = Scope(now_ms=0, owners=within)
    try:
        hits = index.search(shorten_query(query.text), scope=scope, limit=DEPTH)
    except InvalidQuery:
        return []
    return [hit.passage_id for hit in hits]


if __name__ == "__main__":
    main()
