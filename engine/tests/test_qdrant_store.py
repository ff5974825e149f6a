"""The contract of vector stores, over Qdrant: mirrored, behind, and quantised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.testing import postgres_server, qdrant_world
from engine.testing.contracts_vectors import VectorScopeContract, VectorStoreContract
from engine.testing.qdrant_world import WAYS, QdrantWorld
from engine.testing.vector_world import InProcessWorld, PostgresWorld, SqliteWorld

ON_POSTGRES = "on postgres, "


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.running() as running:
        yield running.url()


def opened(request: pytest.FixtureRequest, path: Path) -> Iterator[QdrantWorld]:
    """The world that a parameter names: a way, over SQLite unless it says Postgres."""
    name: str = request.param
    database: InProcessWorld
    if name.startswith(ON_POSTGRES):
        database = PostgresWorld(str(request.getfixturevalue("server")))
    else:
        database = SqliteWorld(path / "index.db")
    with qdrant_world.world(database, WAYS[name.removeprefix(ON_POSTGRES)]) as made:
        yield made


class TestQdrantStore(VectorStoreContract):
    """Everything a vector store keeps."""

    @pytest.fixture(params=[*WAYS, f"{ON_POSTGRES}up to date", f"{ON_POSTGRES}behind"])
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantWorld]:
        yield from opened(request, tmp_path)


class TestQdrantScope(VectorScopeContract):
    """Every part of a scope, by a filter of the server and by one of the database."""

    @pytest.fixture(params=["up to date", "behind", f"{ON_POSTGRES}behind"])
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantWorld]:
        yield from opened(request, tmp_path)
