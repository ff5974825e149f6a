"""Keyword search on Postgres beside FTS5: import, size and times of searches.

    python -m benchmarks.postgres_keyword --passages 100000

starts a Postgres of the development requirements, with the settings of the image but for memory,
and measures the index of plain Postgres or (``--flavour textsearch``) the one over pg_textsearch.
The texts are those of ``make bench``, of one owner in the main and of a long tail.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.speed import text
from engine import scope_sql
from engine.keyword.choose import durable_index
from engine.keyword.durable import DurableIndex
from engine.postgres import PostgresConnection
from engine.testing import postgres_server
from engine.text.tokenize import Analyzer, analyzer
from engine.types import Match, Passage, PassageKind, Scope

BATCH = 500
LIMIT = 20
EVERY = 199
"""Of so many memories one is asked about."""
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "fsync": "on", "full_page_writes": "on"}
SCOPE_COPY = f"COPY {scope_sql.TABLE} FROM STDIN"


class EveryWord:
    """An analyzer whose queries keep the words that questions are made of."""

    def __init__(self, plain: Analyzer) -> None:
        self._plain = plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def query_terms(self, text: str) -> list[str]:
        """Every term that a document with this text would have."""
        return list(dict.fromkeys(self._plain.document_terms(text)))


@dataclass(frozen=True, slots=True)
class Data:
    """Passages, and questions about those of the biggest owner and of a small one."""

    passages: list[Passage]
    big: list[str]
    small: list[str]
    small_owner: int


def main() -> None:
    """Measure, and print a table."""
    given = argparse.ArgumentParser()
    given.add_argument("--passages", type=int, default=100_000)
    given.add_argument("--share", type=float, default=0.9, help="of the biggest owner")
    given.add_argument("--flavour", choices=("pgvector", "textsearch"), default="pgvector")
    options = given.parse_args()
    data = made(options.passages, options.share)
    with (
        postgres_server.running(options.flavour, settings=SETTINGS) as server,
        psycopg.connect(server.url(), autocommit=True) as raw,
    ):
        report(PostgresConnection(raw), data)


def made(count: int, share: float) -> Data:
    """The texts of ``make bench`` as passages."""
    owners: dict[str, int] = {}
    passages: list[Passage] = []
    questions: dict[int, list[str]] = {}
    for block in text.notes(count, share):
        for note in block:
            owner = owners.setdefault(note.owner, len(owners) + 1)
            passages.append(_passage(note, owner))
            if owner <= 2 and (note.number % EVERY == 0 or owner == 2):
                asked = questions.setdefault(owner, [])
                asked.append(text.question(note, note.number))
    return Data(passages, questions[1], questions.get(2, [])[:200], 2)


def report(database: PostgresConnection, data: Data) -> None:
    """Import and search, one line for each figure."""
    raw = database.raw
    database.execute(scope_sql.SERVER_TABLE)
    with raw.cursor().copy(SCOPE_COPY) as copy:
        for one in data.passages:
            copy.write_row(_scope_row(one))
    index = _index(database, analyzer("search"))
    index.ensure()
    with took("import, passages a second", len(data.passages)):
        for start in range(0, len(data.passages), BATCH):
            index.upsert(data.passages[start : start + BATCH])
    raw.execute("VACUUM ANALYZE")
    size = "SELECT sum(pg_total_relation_size(oid)) / 1e6 FROM pg_class WHERE relkind = 'r'"
    (megabytes,) = database.execute(f"{size} AND relname LIKE '{index.table}%'").fetchone()
    print(f"disk, MB: {megabytes:.0f}")
    big, small = (Scope(now_ms=1, owners=frozenset({owner})) for owner in (1, data.small_owner))
    every = _index(database, EveryWord(analyzer("search")))
    searches(index, "biggest owner", data.big, big)
    searches(every, "biggest owner, every word of the question", data.big, big)
    searches(index, "small owner", data.small, small)
    searches(every, "small owner, every word of the question", data.small, small)
    searches(index, "all owners", data.big[:100], Scope(now_ms=1, owners=None))
    with took("rewritten, passages a second", 20 * BATCH):
        for start in range(0, 20 * BATCH, BATCH):
            index.upsert(data.passages[start : start + BATCH])
    with took("one at a time, passages a second", 200):
        for one in data.passages[:200]:
            index.upsert([one])


def searches(index: DurableIndex, what: str, questions: Sequence[str], scope: Scope) -> None:
    """Times of one kind of search, after a round that is not counted."""
    for question in questions[:20]:
        index.search(question, scope=scope, limit=LIMIT, match=Match.ANY)
    times = []
    before = _processor_ms(index)
    for question in questions:
        began = time.perf_counter()
        index.search(question, scope=scope, limit=LIMIT, match=Match.ANY)
        times.append((time.perf_counter() - began) * 1000)
    cost = (_processor_ms(index) - before) / len(questions)
    times.sort()
    p50, p95 = statistics.median(times), times[int(len(times) * 0.95)]
    print(f"{what}: p50 {p50:.1f}, p95 {p95:.1f}, most {times[-1]:.1f} ms; cpu {cost:.1f} ms")


def _processor_ms(index: DurableIndex) -> float:
    """Processor time so far of this process and of the one that serves it in Postgres."""
    ((pid,),) = index.connect().execute("SELECT pg_backend_pid()").fetchall()
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return (ticks / os.sysconf("SC_CLK_TCK") + time.process_time()) * 1000


@contextmanager
def took(what: str, count: int) -> Iterator[None]:
    """Print how many of something a second."""
    began = time.perf_counter()
    yield
    print(f"{what}: {count / (time.perf_counter() - began):,.0f}", flush=True)


def _index(database: PostgresConnection, cut: Analyzer) -> DurableIndex:
    return durable_index(lambda: database, analyzer=cut, texts=None)


def _passage(note: text.Note, owner: int) -> Passage:
    record = note.record
    return Passage(
        id=note.number + 1,
        kind=PassageKind.MEMORY,
        parent=str(note.number),
        ordinal=0,
        owner=owner,
        title=record["key"],
        body=record["content"],
        meta=" ".join(record["metadata"]["tags"]),
        text_hash="",
        parent_tokens=0,
        session=record["sessionId"],
    )


def _scope_row(passage: Passage) -> tuple[object, ...]:
    nothing = (passage.session, "factual", False, False, False, 1, None)
    return (passage.id, passage.owner, None, *nothing)


if __name__ == "__main__":
    main()
