from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine import scope_sql
from engine.errors import InvalidQuery
from engine.keyword.fts5 import Fts5Index
from engine.protocols import KeywordIndex
from engine.testing.contracts_keyword import ALICE, NOW_MS, KeywordIndexContract, passage
from engine.text.tokenize import analyzer
from engine.types import Match, Passage, Scope

SCOPE = Scope(now_ms=NOW_MS, owners=frozenset({ALICE}))


def memory_index(name: str = "search") -> Fts5Index:
    database = sqlite3.connect(":memory:", isolation_level=None)
    index = Fts5Index(lambda: database, analyzer=analyzer(name), owns_scope=True)
    index.ensure()
    return index


def ids(index: KeywordIndex, query: str, match: Match = Match.ANY) -> list[int]:
    return [hit.passage_id for hit in index.search(query, scope=SCOPE, limit=20, match=match)]


class TestFts5Index(KeywordIndexContract):
    def make_index(self) -> KeywordIndex:
        return memory_index()


def test_writes_join_the_callers_transaction() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    index = Fts5Index(lambda: database, analyzer=analyzer("search"), owns_scope=True)
    index.ensure()
    database.execute("BEGIN IMMEDIATE")
    index.upsert([passage(1, "deploy on Friday")])
    assert ids(index, "friday") == [1]
    database.execute("ROLLBACK")
    assert ids(index, "friday") == []


def test_a_failed_upsert_leaves_nothing_behind() -> None:
    index = memory_index()
    broken = passage(2, "deploy on Monday", session=object())
    with pytest.raises((sqlite3.InterfaceError, sqlite3.ProgrammingError)):
        index.upsert([passage(1, "deploy on Friday"), broken])
    assert index.count() == 0


def test_it_works_on_a_connection_with_implicit_transactions() -> None:
    database = sqlite3.connect(":memory:")
    index = Fts5Index(lambda: database, analyzer=analyzer("search"), owns_scope=True)
    index.ensure()
    index.upsert([passage(1, "deploy on Friday")])
    database.commit()
    assert ids(index, "friday") == [1]


def test_each_thread_may_have_a_connection_of_its_own(tmp_path: Path) -> None:
    local = threading.local()

    def connect() -> sqlite3.Connection:
        if not hasattr(local, "database"):
            local.database = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
        connection: sqlite3.Connection = local.database
        return connection

    index = Fts5Index(connect, analyzer=analyzer("search"), owns_scope=True)
    index.ensure()
    index.upsert([passage(1, "deploy on Friday")])
    found: list[list[int]] = []

    def search() -> None:
        found.append(ids(index, "friday"))
        connect().close()

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    connect().close()
    assert found == [[1]]


def test_scope_columns_and_texts_may_belong_to_somebody_else() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute(scope_sql.CREATE_TABLE)
    database.execute(
        "INSERT INTO memory_passage VALUES (1, ?, NULL, '', 'factual', 0, 0, 0, ?, NULL)",
        (ALICE, NOW_MS),
    )
    stored = {1: passage(1, "deploy on Friday")}

    def texts(wanted: Collection[int]) -> Mapping[int, Passage]:
        return {key: stored[key] for key in wanted if key in stored}

    index = Fts5Index(lambda: database, analyzer=analyzer("search"), texts=texts)
    index.ensure()
    index.upsert(list(stored.values()))
    assert ids(index, "on friday", Match.PHRASE) == [1]
    database.execute("UPDATE memory_passage SET is_archived = 1")
    assert ids(index, "friday") == []


def test_match_modes_without_texts_are_a_mistake_of_the_program() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    index = Fts5Index(lambda: database, analyzer=analyzer("search"))
    index.ensure()
    with pytest.raises(ValueError, match="texts"):
        index.search("friday", scope=SCOPE, limit=5, match=Match.ALL)


def test_health_tells_of_an_index_that_was_never_made() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    health = Fts5Index(lambda: database, analyzer=analyzer("search"), owns_scope=True).health()
    assert not health.available
    assert health.reason


def test_health_asks_for_a_reindex_after_the_analyzer_changed() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    index = Fts5Index(lambda: database, analyzer=analyzer("search"), owns_scope=True)
    index.ensure()
    database.execute("UPDATE memory_fts_identity SET analyzer = 'older'")
    assert "reindex" in index.health().reason
    index.clear()
    assert index.health().reason == ""
    assert index.built_by() == analyzer("search").version


def test_an_endless_query_is_refused() -> None:
    with pytest.raises(InvalidQuery) as refusal:
        memory_index().search(" ".join(map(str, range(2000))), scope=SCOPE, limit=5)
    assert refusal.value.code == "too_many_terms"


def test_a_table_name_is_an_identifier() -> None:
    with pytest.raises(ValueError, match="identifier"):
        Fts5Index(lambda: sqlite3.connect(":memory:"), analyzer=analyzer("search"), table="x; y")


def test_a_query_within_the_bounds_of_a_search_is_never_too_long_for_fts5() -> None:
    index = memory_index()
    index.upsert([passage(1, "什么都有")])
    query = "".join(chr(0x4E00 + number) for number in range(341))
    assert ids(index, query) in ([], [1])


def test_a_phrase_that_ten_thousand_texts_of_a_vault_do_not_hold_is_refused() -> None:
    index = memory_index()
    library, memories = Scope(now_ms=0, vaults=frozenset({7})), Scope(now_ms=0, owners=None)
    texts = [replace(passage(number, "refund policy"), vault=7) for number in range(1, 10_001)]
    index.upsert(texts)
    assert index.search("policy refund", scope=library, limit=5, match=Match.PHRASE) == []
    more = replace(passage(10_001, "refund policy"), vault=7)
    index.upsert([more])
    with pytest.raises(InvalidQuery) as refused:
        index.search("policy refund", scope=library, limit=5, match=Match.PHRASE)
    assert refused.value.code == "too_common"
    assert len(index.search("policy refund", scope=library, limit=5, match=Match.ALL)) == 5
    index.upsert([replace(text, vault=None) for text in (*texts, more)])
    assert index.search("policy refund", scope=memories, limit=5, match=Match.PHRASE) == []
