"""pgvector with many rows: whoever lies near, an owner gets its hits; graphs find the nearest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from engine.testing import postgres_server
from engine.testing.contracts_vectors import ALICE, BOB, NOW, OF_ALICE, OF_BOB, ids, passage
from engine.testing.pgvector_world import PgVectorWorld
from engine.types import MemoryType, Scope, Signature, Vector
from engine.vectors.pgvector import PgVectorStore
from engine.vectors.pgvector_options import PgVectorOptions

DIM = 16
SIGNATURE = Signature("local", "fake", "1", DIM)
HUGE = 20_000
FAR = range(HUGE + 1, HUGE + 6)
QUERY = np.eye(DIM, dtype=np.float32)[0]
HOWS = {
    "by scans": PgVectorOptions(least=10**9),
    "as it finds best": PgVectorOptions(),
    "by a graph": PgVectorOptions(least=0),
    "by a graph over bits": PgVectorOptions(least=0, quantization="binary"),
}


@pytest.fixture(scope="module")
def world() -> Iterator[PgVectorWorld]:
    """20,000 passages of Alice around the query, five of Bob on the other side."""
    with postgres_server.running() as server:
        made = PgVectorWorld(server.url(), PgVectorOptions(least=10**9))
        store = made.open(SIGNATURE)
        rng = np.random.default_rng(5)
        near = QUERY + 0.6 * rng.standard_normal((HUGE, DIM)).astype(np.float32)
        vectors = dict(enumerate(near, start=1))
        for place, key in enumerate(FAR):
            vectors[key] = -QUERY + np.eye(DIM, dtype=np.float32)[1] * (place + 1)
        made.put(*(passage(key, ALICE) for key in range(1, HUGE + 1)))
        changes: list[dict[str, object]] = [
            {},
            {"session": "s1"},
            {"type": MemoryType.EPISODIC},
            {"is_shared": True},
            {"expires_ms": NOW + 5},
        ]
        made.put(
            *(
                dataclasses.replace(passage(key, BOB), **change)  # type: ignore[arg-type]
                for key, change in zip(FAR, changes, strict=True)
            )
        )
        store.upsert(vectors, hashes=dict.fromkeys(vectors, "h"))
        yield made
        made.close()


@pytest.fixture(scope="module", params=HOWS)
def store(request: pytest.FixtureRequest, world: PgVectorWorld) -> PgVectorStore:
    made = PgVectorStore(
        world.connect, signature=SIGNATURE, index_id=1, options=HOWS[request.param]
    )
    made.maintain()
    return made


def search(store: PgVectorStore, scope: Scope, query: Vector = QUERY) -> list[int]:
    return ids(store.search(query, scope=scope, limit=20))


def test_a_small_owner_beside_a_huge_one_gets_all_its_hits(store: PgVectorStore) -> None:
    assert sorted(search(store, OF_BOB)) == list(FAR)
    assert len(search(store, OF_ALICE)) == 20


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"session": "s1"}, [FAR[1]]),
        ({"types": frozenset({MemoryType.EPISODIC})}, [FAR[2]]),
        ({"owners": frozenset[int](), "include_shared": True}, [FAR[3]]),
        ({"now_ms": NOW + 5}, [FAR[0], FAR[1], FAR[2], FAR[3]]),
        ({"owners": None, "types": frozenset({MemoryType.EPISODIC})}, [FAR[2]]),
    ],
)
def test_every_part_of_a_scope_finds_the_few_rows_that_are_far(
    store: PgVectorStore, change: dict[str, object], wanted: list[int]
) -> None:
    scope = dataclasses.replace(OF_BOB, **change)  # type: ignore[arg-type]
    assert sorted(search(store, scope)) == wanted


def test_a_vault_with_few_cards_gets_its_hits(world: PgVectorWorld, store: PgVectorStore) -> None:
    world.put(dataclasses.replace(passage(FAR[0], BOB), vault=9))
    assert search(store, dataclasses.replace(OF_ALICE, vaults=frozenset({9}))) != []
    assert search(store, Scope(NOW, frozenset(), vaults=frozenset({9}))) == [FAR[0]]
    assert FAR[0] not in search(store, OF_BOB)
    world.put(passage(FAR[0], BOB))
    assert FAR[0] in search(store, OF_BOB)


def test_a_graph_finds_nearly_all_that_a_scan_finds(
    world: PgVectorWorld, store: PgVectorStore
) -> None:
    scan = PgVectorStore(world.connect, signature=SIGNATURE, index_id=1, options=HOWS["by scans"])
    rng = np.random.default_rng(6)
    agreed = 0
    for _ in range(20):
        query = QUERY + 0.6 * rng.standard_normal(DIM).astype(np.float32)
        wanted = search(scan, OF_ALICE, query)
        agreed += len({*search(store, OF_ALICE, query)} & {*wanted})
    # Bits of few dimensions without clusters tell little; they choose among four times as many.
    assert agreed >= (0.3 if store.health().detail["graph"] == "bit" else 0.9) * 400


def test_scores_are_those_of_the_durable_vectors(store: PgVectorStore) -> None:
    found = store.search(QUERY, scope=OF_BOB, limit=5)
    lengths = {key: np.sqrt(1 + (place + 1) ** 2) for place, key in enumerate(FAR)}
    assert ids(found) == [*reversed(FAR)]
    assert [candidate.score for candidate in found] == pytest.approx(
        [-1 / lengths[key] for key in reversed(FAR)], abs=1e-6
    )
