"""The tables of pgvector: filled from the durable vectors, exchanged, given their graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.errors import Unavailable
from engine.postgres import PostgresConnection
from engine.protocols import VectorStore
from engine.testing import postgres_server
from engine.testing.contracts_vectors import (
    DIM,
    EVERYONE,
    OF_ALICE,
    X,
    Y,
    Z,
    fill,
    ids,
    passage,
    vector,
)
from engine.testing.pgvector_world import PgVectorWorld
from engine.testing.vector_world import SIGNATURE
from engine.types import Signature, Vector
from engine.vectors.in_process import InProcessIndex
from engine.vectors.pgvector import PgVectorStore
from engine.vectors.pgvector_options import PgVectorOptions
from engine.vectors.state import Options

MANY = 4_500
"""More than two pages."""
TABLES = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'memory_pgvector_1%' ORDER BY 1"
GRAPHS = "SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%hnsw%' ORDER BY 1"
SPOIL = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = ?::regclass"
BUILDER = "SELECT pg_advisory_lock(hashtextextended('pgvector-upkeep-1', 0))"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.running() as running:
        yield running.url()


@pytest.fixture
def world(server: str) -> Iterator[PgVectorWorld]:
    made = PgVectorWorld(server, PgVectorOptions())
    yield made
    made.close()


@pytest.fixture
def other(world: PgVectorWorld) -> PostgresConnection:
    """A connection of another process."""
    return world.another()


def over(connection: PostgresConnection, options: PgVectorOptions | None = None) -> PgVectorStore:
    """The store as the process of a connection has it."""
    return PgVectorStore(
        lambda: connection, signature=SIGNATURE, index_id=1, options=options or PgVectorOptions()
    )


def in_process(world: PgVectorWorld, signature: Signature = SIGNATURE) -> InProcessIndex:
    store = InProcessIndex(
        world.connect, signature=signature, index_id=1, options=Options(centred=True)
    )
    store.ensure()
    return store


def search(store: VectorStore, values: tuple[float, ...] = X) -> list[int]:
    return ids(store.search(vector(values), scope=EVERYONE, limit=100))


def names(world: PgVectorWorld, sql: str) -> list[str]:
    return [row[0] for row in world.connect().execute(sql).fetchall()]


def test_a_store_chosen_later_is_filled_from_the_durable_vectors(world: PgVectorWorld) -> None:
    before = in_process(world)
    world.put(passage(1), passage(2))
    fill(before, {1: X, 2: Y})
    store = over(world.connect())
    store.ensure()
    assert store.is_due()
    with pytest.raises(Unavailable) as refused:
        search(store)
    assert refused.value.code == "filling"
    assert store.health().available is False
    told: list[tuple[int, int, str]] = []
    kept = store.maintain(lambda *step: told.append(step))
    assert (kept.filled, kept.waits, told) == (2, "", [(2, 2, "filling")])
    assert search(store) == search(before) == [1, 2]
    assert not store.is_due()


def test_what_is_written_while_a_table_is_filled_is_in_it(
    world: PgVectorWorld, other: PostgresConnection
) -> None:
    before = in_process(world)
    keys = range(1, MANY + 1)
    world.put(*(passage(key) for key in range(1, MANY + 2)))
    fill(before, {key: (0.1, 1.0, float(key), 0.0) for key in keys})
    store, writer = over(world.connect()), over(other)
    store.ensure()

    def write(done: int, total: int, what: str) -> None:
        assert (what, total) == ("filling", MANY)
        if done < MANY:
            fill(writer, {1: X, MANY: X, MANY + 1: X})
            writer.delete([2, MANY - 1])

    store.maintain(write)
    assert search(store)[:3] == [1, MANY, MANY + 1]
    found = ids(store.search(vector(X), scope=EVERYONE, limit=2 * MANY))
    assert {*found} == {*range(1, MANY + 2)} - {2, MANY - 1}
    assert len(found) == store.count()


def test_a_table_made_anew_takes_the_place_of_the_old_one_for_every_process(
    world: PgVectorWorld, other: PostgresConnection
) -> None:
    store, neighbour = world.open(), over(other)
    world.put(passage(1), passage(2))
    fill(store, {1: X})
    assert search(neighbour) == [1]
    store.rebuild()
    assert names(world, TABLES) == ["memory_pgvector_1_2"]
    assert search(neighbour) == [1]
    with other.transaction():
        fill(neighbour, {2: Y})
        assert search(neighbour) == [1, 2]
        assert search(store) == [1]
        assert store.rebuild().waits == "busy"
    assert search(store) == [1, 2]
    assert store.rebuild().waits == ""
    assert names(world, TABLES) == ["memory_pgvector_1_3"]
    assert search(neighbour) == [1, 2]


def test_a_dropped_index_leaves_no_table_and_a_rollback_leaves_everything(
    world: PgVectorWorld,
) -> None:
    store = world.open()
    world.put(passage(1))
    fill(store, {1: X})
    world.begin()
    store.drop()
    assert search(store) == []
    world.rollback()
    assert search(store) == [1]
    store.drop()
    assert names(world, TABLES) == []
    assert search(store) == []


def test_a_graph_is_made_once_there_are_enough_rows_and_another_kind_replaces_it(
    world: PgVectorWorld,
) -> None:
    store = world.open()
    world.put(*(passage(key) for key in range(1, 6)))
    fill(store, {key: (1.0, float(key), 0.0, 0.0) for key in range(1, 6)})
    assert (store.maintain().built, names(world, GRAPHS)) == ("", [])
    eager = over(world.connect(), PgVectorOptions(least=5))
    assert eager.is_due()
    assert (eager.maintain().built, eager.maintain().built) == ("halfvec", "")
    bits = over(world.connect(), PgVectorOptions(least=5, quantization="binary"))
    assert bits.maintain().built == "bit"
    assert names(world, GRAPHS) == ["memory_pgvector_1_1_bit"]
    assert bits.health().detail["graph"] == "bit"


def test_a_graph_that_was_not_completed_is_made_again(world: PgVectorWorld) -> None:
    store = over(world.connect(), PgVectorOptions(least=0))
    store.ensure()
    assert store.maintain().built == "halfvec"
    world.connect().execute(SPOIL, ("memory_pgvector_1_1_halfvec",))
    assert store.health().detail["graph"] == ""
    assert store.is_due()
    assert store.maintain().built == "halfvec"
    assert store.health().detail["graph"] == "halfvec"


def test_one_process_does_the_upkeep_at_a_time(
    world: PgVectorWorld, other: PostgresConnection
) -> None:
    store = over(world.connect(), PgVectorOptions(least=0))
    store.ensure()
    other.execute(BUILDER)
    assert store.maintain().waits == "busy"
    other.execute("SELECT pg_advisory_unlock_all()")
    assert store.maintain().waits == ""


def test_inside_a_transaction_everything_but_the_graph_is_made(world: PgVectorWorld) -> None:
    before = in_process(world)
    world.put(passage(1))
    fill(before, {1: X})
    store = over(world.connect(), PgVectorOptions(least=0))
    store.ensure()
    world.begin()
    assert store.maintain().waits == "in_transaction"
    assert search(store) == [1]
    world.commit()
    assert search(store) == [1]
    assert store.maintain().built == "halfvec"


def languages(store: VectorStore, world: PgVectorWorld, count: int) -> dict[int, Vector]:
    """Vectors of the same things in two languages, the second numbered from 1001."""
    things = np.random.default_rng(3).standard_normal((count, 16)).astype(np.float32) * 0.1
    things[:, :2] = 0
    shift = np.eye(16, dtype=np.float32)
    vectors = {key + 1: thing + shift[0] for key, thing in enumerate(things)}
    vectors |= {key + 1001: thing + shift[1] for key, thing in enumerate(things)}
    world.put(*(passage(key) for key in vectors))
    words = {key: "zh" if key < 1001 else "latin" for key in vectors}
    store.upsert(vectors, hashes=dict.fromkeys(vectors, "h"), languages=words)
    return vectors


def test_new_means_make_a_new_table_and_scores_are_those_of_the_in_process_index(
    world: PgVectorWorld,
) -> None:
    signature = Signature("local", "multilingual", "1", 16)
    beside = in_process(world, signature)
    store = PgVectorStore(
        world.connect, signature=signature, index_id=1, options=PgVectorOptions(centred=True)
    )
    store.ensure()
    vectors = languages(store, world, 80)
    assert names(world, TABLES) == ["memory_pgvector_1_1"]
    assert store.is_due()
    assert store.maintain().filled == 160
    assert names(world, TABLES) == ["memory_pgvector_1_2"]
    for language in ("zh", ""):
        found = store.search(vectors[17], scope=OF_ALICE, limit=20, language=language)
        wanted = beside.search(vectors[17], scope=OF_ALICE, limit=20, language=language)
        assert ids(found) == ids(wanted)
        assert [c.score for c in found] == pytest.approx([c.score for c in wanted], abs=1e-6)
        assert (1017 in ids(found)) == bool(language)


@pytest.mark.parametrize(
    ("dim", "quantization", "graph", "notice"),
    [
        (2_500, "none", "halfvec", None),
        (4_000, "int8", "halfvec", "halfvec_for_int8"),
        (4_500, "none", "", "scan_only"),
        (4_500, "binary", "bit", None),
    ],
)
def test_many_dimensions_have_a_graph_where_one_is_possible(
    world: PgVectorWorld, dim: int, quantization: str, graph: str, notice: str | None
) -> None:
    options = PgVectorOptions(least=1, quantization=quantization)  # type: ignore[arg-type]
    signature = Signature("remote", "large", "1", dim)
    store = PgVectorStore(world.connect, signature=signature, index_id=1, options=options)
    store.ensure()
    vectors = np.random.default_rng(1).standard_normal((40, dim)).astype(np.float32)
    world.put(*(passage(key) for key in range(1, 41)))
    store.upsert(dict(enumerate(vectors, start=1)), hashes=dict.fromkeys(range(1, 41), "h"))
    assert store.maintain().built == graph
    assert ids(store.search(vectors[6], scope=OF_ALICE, limit=3))[0] == 7
    health = store.health()
    assert (health.available, health.detail["graph"]) == (True, graph)
    assert health.detail.get("notice") == notice


def test_vectors_of_another_dimension_in_the_table_are_left_out(world: PgVectorWorld) -> None:
    world.put(passage(1), passage(2))
    store = world.open()
    fill(store, {1: X, 2: Z})
    world.connect().execute("UPDATE memory_vector SET vector = 'x' WHERE passage_id = 1")
    assert store.count() == 1
    assert search(store) == [2]
    assert store.rebuild().filled == 1
    assert store.health().detail["dim"] == DIM
