"""pgvector: the contract, and random scopes beside the SQL condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from engine import scope_sql
from engine.database import POSTGRESQL
from engine.testing import postgres_server
from engine.testing.contracts_vectors import (
    DIM,
    VectorScopeContract,
    VectorStoreContract,
    ids,
)
from engine.testing.pgvector_world import WORLDS, PgVectorWorld
from engine.testing.random_scopes import cosine, random_passage, random_scope

Place = Callable[[str], PgVectorWorld]


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """Worlds of one server, each in a database of its own."""
    urls: dict[str, str] = {}
    with postgres_server.running() as server:

        def of(name: str) -> PgVectorWorld:
            if name not in urls:
                urls[name] = server.create(name.replace(" ", "_"))
            return PgVectorWorld(urls[name], WORLDS[name], again=True)

        yield of


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest, place: Place) -> Iterator[PgVectorWorld]:
    made = place(request.param)
    yield made
    made.close()


class TestPgVector(VectorStoreContract):
    @pytest.fixture(params=WORLDS)
    def world(self, request: pytest.FixtureRequest, place: Place) -> Iterator[PgVectorWorld]:
        made = place(request.param)
        yield made
        made.close()


class TestPgVectorScope(VectorScopeContract):
    @pytest.fixture(params=WORLDS)
    def world(self, request: pytest.FixtureRequest, place: Place) -> Iterator[PgVectorWorld]:
        made = place(request.param)
        yield made
        made.close()


def test_random_scopes_agree_with_the_sql_condition(world: PgVectorWorld) -> None:
    rng = np.random.default_rng(7)
    store = world.open()
    passages = [random_passage(key, rng) for key in range(1, 401)]
    vectors = {p.id: rng.standard_normal(DIM).astype(np.float32) for p in passages}
    world.put(*passages)
    store.upsert(vectors, hashes=dict.fromkeys(vectors, "h"))
    for _ in range(200):
        scope = random_scope(rng)
        query = rng.standard_normal(DIM).astype(np.float32)
        limit = int(rng.integers(1, 60))
        condition, parameters = scope_sql.where(scope, dialect=POSTGRESQL)
        statement = f"SELECT p.id FROM {scope_sql.TABLE} p WHERE {condition}"
        allowed = [row[0] for row in world.connect().execute(statement, parameters).fetchall()]
        wanted = sorted(allowed, key=lambda key: (-cosine(vectors[key], query), key))[:limit]
        found = ids(store.search(query, scope=scope, limit=limit))
        assert len(found) == len(wanted)
        assert len({*found} & {*wanted}) >= 0.95 * len(wanted)
        if world.options.least:
            assert found == wanted
