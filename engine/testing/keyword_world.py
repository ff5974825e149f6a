"""A database file with a keyword index and a change log, and passages in three languages."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import local

from engine import scope_sql
from engine.keyword.bm25 import Formula
from engine.keyword.fts5 import Fts5Index
from engine.keyword.part import Limits
from engine.keyword.postings import PostingsIndex
from engine.testing.contracts_keyword import ALICE, NOW_MS, passage
from engine.text.tokenize import analyzer
from engine.types import Candidate, Passage, Scope

SCOPE = Scope(now_ms=NOW_MS, owners=frozenset({ALICE}))
WORDS = (
    *("deploy", "release", "friday", "coffee", "tea", "the", "of", "and", "is", "Node.js", "C++"),
    *("咖啡", "喜欢", "退款", "政策", "的", "在", "北京", "天气", "发票"),
    *("東京", "タワー", "ラーメン", "です", "コーヒー", "は", "住んでいる", "커피"),
)
WITHIN_A_SEARCH = Limits(built_at_once=10**6)
"""No thread builds what a test asks for."""


class KeywordWorld:
    """One connection for each thread; ``open`` gives another index over the same database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._own = local()
        self._opened: list[sqlite3.Connection] = []
        self.connect().execute("PRAGMA journal_mode = WAL")
        self.connect().execute(scope_sql.CREATE_CHANGES)
        self.fts5 = Fts5Index(self.connect, analyzer=analyzer("search"), owns_scope=True)
        self.fts5.ensure()

    def connect(self) -> sqlite3.Connection:
        """The connection of the calling thread."""
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous = OFF")
            self._opened.append(connection)
            self._own.connection = connection
        return connection

    def open(
        self,
        *,
        formula: Formula | None = None,
        folder: Path | None = None,
        limits: Limits = WITHIN_A_SEARCH,
        release: Callable[[], None] | None = None,
    ) -> PostingsIndex:
        """An index as another process would have it."""
        return PostingsIndex(
            self.fts5, formula=formula, folder=folder, limits=limits, release=release
        )

    def execute(self, sql: str, *parameters: object) -> None:
        """Change something, and say so to nobody."""
        self.connect().execute(sql, parameters)

    def log(self, *ids: int) -> None:
        """Entries of the change log."""
        sql = f"INSERT INTO {scope_sql.CHANGES} (passage_id) VALUES (?)"  # noqa: S608
        self.connect().executemany(sql, [(passage_id,) for passage_id in ids])

    def close(self) -> None:
        """Close every connection."""
        for connection in self._opened:
            connection.close()


def dice(seed: int) -> random.Random:
    """Chance that is the same in every run."""
    return random.Random(seed)  # noqa: S311


def random_text(chance: random.Random, most: int) -> str:
    """Up to so many words of three languages, common ones more often."""
    size = chance.randrange(most + 1)
    picked = [WORDS[int(len(WORDS) * chance.random() ** 2)] for _ in range(size)]
    return " ".join(picked)


def random_passages(chance: random.Random, ids: Sequence[int], **changes: object) -> list[Passage]:
    """Passages with random title, body and metadata."""
    return [
        passage(
            number,
            random_text(chance, 30),
            title=random_text(chance, 3),
            meta=random_text(chance, 2),
            **changes,
        )
        for number in ids
    ]


def same(found: Sequence[Candidate], expected: Sequence[Candidate]) -> bool:
    """Whether two lists have the same scores, and the same passages where scores tell them apart.

    Sums of 32 bits may put passages whose scores agree to a millionth in another order.
    """
    if len(found) != len(expected):
        return False
    return all(
        abs(one.score - other.score) <= 1e-4 * max(1.0, abs(other.score))
        for one, other in zip(found, expected, strict=True)
    ) and _places(found, expected)


def _places(found: Sequence[Candidate], expected: Sequence[Candidate]) -> bool:
    scores = {hit.passage_id: hit.score for hit in expected}
    last = expected[-1].score if expected else 0.0
    return all(abs(scores.get(hit.passage_id, last) - hit.score) <= 1e-4 for hit in found)
