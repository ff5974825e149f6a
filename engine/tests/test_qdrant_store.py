"""The contract of vector stores, over Qdrant: mirrored, behind, and quantised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.testing import qdrant_world
from engine.testing.contracts_vectors import VectorScopeContract, VectorStoreContract
from engine.testing.qdrant_world import WAYS, QdrantWorld


class TestQdrantStore(VectorStoreContract):
    """Everything a vector store keeps."""

    @pytest.fixture(params=WAYS)
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantWorld]:
        with qdrant_world.world(tmp_path / "index.db", WAYS[request.param]) as made:
            yield made


class TestQdrantScope(VectorScopeContract):
    """Every part of a scope, by a filter of the server and by one of the database."""

    @pytest.fixture(params=["up to date", "behind"])
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantWorld]:
        with qdrant_world.world(tmp_path / "index.db", WAYS[request.param]) as made:
            yield made
