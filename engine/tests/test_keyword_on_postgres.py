"""What a server makes different: commits in any order, failures in transactions, two at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import psycopg
import pytest

from engine import scope_sql
from engine.columns import change_log
from engine.errors import Unavailable
from engine.keyword.pg_textsearch import PgTextsearchIndex, is_available
from engine.keyword.postgres import PostgresIndex
from engine.keyword.postings import PostingsIndex
from engine.postgres import PostgresConnection
from engine.protocols import KeywordIndex
from engine.testing import postgres_server
from engine.testing.contracts_keyword import ALICE, BOB, passage
from engine.testing.keyword_world import SCOPE, WITHIN_A_SEARCH, dice, random_passages, same
from engine.tests.test_keyword_postings_scores import SCOPES, queries, random_scopes
from engine.text.tokenize import analyzer
from engine.types import Match, Scope

Opened = Callable[[], PostgresConnection]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.running("textsearch") as running:
        yield running.url()


@pytest.fixture
def opened(server: str) -> Iterator[Opened]:
    """Opens connections to a database with an empty index, as processes would."""
    with ExitStack() as stack:

        def connect() -> PostgresConnection:
            raw = stack.enter_context(psycopg.connect(server, autocommit=True))
            return PostgresConnection(raw)

        database = connect()
        database.execute(f"DROP TABLE IF EXISTS {scope_sql.TABLE}, {scope_sql.CHANGES}")
        database.execute(scope_sql.SERVER_CHANGES)
        change_log.ensure(database)
        assert is_available(lambda: database)
        durable(database).clear()
        yield connect


def durable(database: PostgresConnection) -> PostgresIndex:
    return PostgresIndex(lambda: database, analyzer=analyzer("search"), owns_scope=True)


def in_memory(database: PostgresConnection) -> PostingsIndex:
    return PostingsIndex(durable(database), limits=WITHIN_A_SEARCH)


def ids(index: KeywordIndex, query: str, scope: Scope = SCOPE) -> list[int]:
    return sorted(hit.passage_id for hit in index.search(query, scope=scope, limit=20))


def test_what_is_written_first_and_committed_last_is_found_by_every_process(opened: Opened) -> None:
    slow, quick = opened(), opened()
    reader = in_memory(opened())
    assert ids(reader, "friday") == []
    with slow.transaction():
        in_memory(slow).upsert([passage(1, "friday")])
        in_memory(quick).upsert([passage(2, "friday")])
        assert ids(reader, "friday") == [2]
        in_memory(quick).upsert([passage(2, "monday")])
        assert ids(reader, "friday") == []
    assert ids(reader, "friday") == [1]
    assert ids(reader, "monday") == [2]
    assert reader.health().detail["passages_in_memory"] == 2


def test_a_transaction_sees_its_own_changes_and_a_rollback_leaves_none(opened: Opened) -> None:
    writer = opened()
    index, other = in_memory(writer), in_memory(opened())
    index.upsert([passage(1, "friday")])
    with pytest.raises(RuntimeError), writer.transaction():
        index.upsert([passage(2, "friday")])
        assert ids(index, "friday") == [1, 2]
        assert ids(other, "friday") == [1]
        raise RuntimeError
    assert ids(index, "friday") == ids(other, "friday") == [1]


def test_a_search_that_fails_leaves_the_transaction_usable(opened: Opened) -> None:
    database = opened()
    index = in_memory(database)
    database.execute("DROP TABLE memory_terms_posting")
    with database.transaction():
        with pytest.raises(Unavailable):
            durable(database).search("friday", scope=SCOPE, limit=5)
        assert not index.health().available
        assert database.execute("SELECT 1").fetchone() == (1,)


def test_two_that_store_one_passage_for_the_first_time_wait_for_each_other(opened: Opened) -> None:
    first, second = opened(), opened()
    with first.transaction():
        durable(first).upsert([passage(1, "friday")])
        other = threading.Thread(target=durable(second).upsert, args=([passage(1, "monday")],))
        other.start()
    other.join()
    index = durable(first)
    assert (ids(index, "friday"), ids(index, "monday"), index.count()) == ([], [1], 1)


def test_tables_of_which_one_is_lost_are_made_anew(opened: Opened) -> None:
    index = durable(opened())
    index.upsert([passage(1, "friday")])
    index.connect().execute("DROP TABLE memory_terms")
    index.ensure()
    assert index.count() == 0
    index.upsert([passage(1, "friday")])
    assert ids(index, "friday") == [1]


def test_words_of_any_length_are_found(opened: Opened) -> None:
    word = "pneumo" * 2000
    index = durable(opened())
    index.upsert([passage(1, f"{word}a"), passage(2, f"{word}b")])
    assert ids(index, f"{word}b") == [2]
    index.delete([2])
    assert ids(index, f"{word}b") == []


@pytest.mark.parametrize("scope", [*SCOPES, {"owners": frozenset({ALICE})}])
def test_scores_are_those_of_the_memory(opened: Opened, scope: dict[str, object]) -> None:
    memory = in_memory(opened())
    table = memory.durable
    memory.upsert(random_scopes(dice(3), range(1, 401)))
    asked = replace(SCOPE, **scope)  # type: ignore[arg-type]
    for query in [*queries(9, 15), "タ", "커", "タ the 咖啡"]:
        expected = memory.search(query, scope=asked, limit=30)
        assert same(table.search(query, scope=asked, limit=30), expected), query


def test_the_extension_gives_the_same_list(opened: Opened) -> None:
    database = opened()
    table = durable(database)
    eager = PgTextsearchIndex(lambda: database, analyzer=analyzer("search"), owns_scope=True)
    eager.many_postings = 1
    eager.clear()
    eager.upsert(random_passages(dice(4), range(1, 400)))
    eager.upsert(random_passages(dice(5), range(400, 440), owner=BOB))
    for query in queries(7, 20):
        for owner in (ALICE, BOB):
            asked = replace(SCOPE, owners=frozenset({owner}))
            expected = table.search(query, scope=asked, limit=5)
            assert same(eager.search(query, scope=asked, limit=5), expected), query
    assert ids(eager, "deploy") == ids(table, "deploy")


def test_the_extension_is_not_asked_before_every_row_has_its_column(opened: Opened) -> None:
    database = opened()
    table = durable(database)
    table.upsert([passage(1, "friday coffee")])
    eager = PgTextsearchIndex(lambda: database, analyzer=analyzer("search"), owns_scope=True)
    eager.many_postings = 0
    eager.ensure()
    assert not eager.is_current(), "the rows are to be written again"
    assert ids(eager, "friday") == [1]
    eager.upsert([passage(1, "friday coffee")])
    eager.mark_current()
    assert ids(eager, "friday") == [1]
    assert [hit.passage_id for hit in eager.search("coffee", scope=SCOPE, limit=1)] == [1]
    assert eager.search("friday coffee", scope=SCOPE, limit=5, match=Match.PHRASE)
