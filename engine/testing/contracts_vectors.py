"""What every vector store keeps. Subclass, and give a ``world`` fixture.

Vectors of these tests have four dimensions. The numbers in test names are case ids of the
original's described behaviours, area ``vector_search``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pytest

from engine.errors import DimensionMismatch, UnknownPassage, ZeroVector
from engine.protocols import VectorStore
from engine.types import Candidate, MemoryType, Passage, PassageKind, Scope, Vector

DIM = 4
NOW = 1_000_000
ALICE, BOB = 1, 2
X, Y, Z = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)
EVERYONE = Scope(now_ms=NOW, owners=None)
OF_ALICE = Scope(now_ms=NOW, owners=frozenset({ALICE}))
OF_BOB = Scope(now_ms=NOW, owners=frozenset({BOB}))


class VectorWorld(Protocol):
    """A place with passages and one store of four dimensions over them."""

    def open(self) -> VectorStore:
        """A new instance over the same data, ready for use."""
        ...

    def put(self, *passages: Passage) -> None:
        """Create or change passages, as the product does it."""
        ...

    def remove(self, *ids: int) -> None:
        """Remove passages, as the product does it."""
        ...


def passage(
    passage_id: int, owner: int = ALICE, *, memory_type: MemoryType = MemoryType.FACTUAL
) -> Passage:
    """A live passage; change it with ``dataclasses.replace``."""
    return Passage(
        id=passage_id,
        kind=PassageKind.MEMORY,
        parent=str(passage_id),
        ordinal=0,
        owner=owner,
        title="",
        body="",
        meta="",
        text_hash=f"hash-{passage_id}",
        parent_tokens=1,
        type=memory_type,
        retained_ms=NOW,
    )


def vector(values: Sequence[float]) -> Vector:
    """Values as a float32 array, not normalised."""
    return np.array(values, np.float32)


def ids(found: Sequence[Candidate]) -> list[int]:
    """Passage ids in order."""
    return [candidate.passage_id for candidate in found]


def fill(store: VectorStore, vectors: Mapping[int, Sequence[float]]) -> None:
    """Store vectors of existing passages."""
    store.upsert(
        {key: vector(values) for key, values in vectors.items()},
        hashes={key: f"hash-{key}" for key in vectors},
    )


class VectorStoreContract:
    """Tests of the protocol ``VectorStore``."""

    @pytest.fixture
    def world(self) -> VectorWorld:
        """The world under test; subclasses override it."""
        pytest.fail("the subclass gives the world")

    @pytest.fixture
    def store(self, world: VectorWorld) -> VectorStore:
        return world.open()

    def test_vector_search_01_nearest_come_first(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        world.put(passage(1), passage(2), passage(3))
        fill(store, {1: X, 2: Y, 3: Z})
        found = store.search(vector((0.9, 0.1, 0, 0)), scope=EVERYONE, limit=2)
        assert ids(found) == [1, 2]
        assert [candidate.rank for candidate in found] == [1, 2]
        assert [candidate.score for candidate in found] == pytest.approx(
            [0.9938837, 0.1104315], abs=1e-6
        )

    def test_vector_search_02_another_owner_is_not_seen(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        world.put(passage(1, ALICE), passage(2, BOB))
        fill(store, {1: X, 2: X})
        assert ids(store.search(vector(X), scope=OF_ALICE, limit=10)) == [1]

    def test_vector_search_03_a_small_owner_beside_a_huge_one_gets_its_hits(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        near = {key: (1.0, key / 1e4, 0.0, 0.0) for key in range(1, 201)}
        far = dict.fromkeys(range(201, 206), (0.1, 1.0, 0.0, 0.0))
        world.put(*(passage(key, ALICE) for key in near), *(passage(key, BOB) for key in far))
        fill(store, {**near, **far})
        assert ids(store.search(vector(X), scope=OF_BOB, limit=100)) == list(far)
        assert len(store.search(vector(X), scope=OF_ALICE, limit=100)) == 100

    def test_vector_search_05_an_unknown_passage_is_refused(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        world.put(passage(1))
        with pytest.raises(UnknownPassage):
            fill(store, {1: X, 99: Y})
        assert store.count() == 0

    def test_vector_search_06_unknown_ids_can_be_deleted(self, store: VectorStore) -> None:
        store.delete([99])
        store.delete([])
        assert store.count() == 0

    def test_the_hashes_of_texts_tell_what_is_missing_or_out_of_date(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        world.put(passage(1), passage(2), passage(3))
        fill(store, {1: X, 2: Y})
        assert store.hashes([1, 2, 3, 99]) == {1: "hash-1", 2: "hash-2"}
        store.upsert({1: vector(Z)}, hashes={1: "another"})
        store.delete([2])
        assert world.open().hashes([1, 2]) == {1: "another"}
        assert store.hashes([]) == {}

    @pytest.mark.parametrize("bad", [(1.0, 0.0, 0.0), (1.0,) * 5, ()])
    def test_vector_search_07_another_dimension_is_refused(
        self, world: VectorWorld, store: VectorStore, bad: tuple[float, ...]
    ) -> None:
        world.put(passage(1), passage(2))
        with pytest.raises(DimensionMismatch):
            fill(store, {1: X, 2: bad})
        with pytest.raises(DimensionMismatch):
            store.search(vector(bad), scope=EVERYONE, limit=1)
        assert store.count() == 0

    def test_vector_search_08_the_best_is_found_whatever_the_quantisation(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        world.put(passage(1), passage(2), passage(3), passage(4))
        fill(store, {1: X, 2: Y, 3: (0.6, 0.8, 0, 0), 4: (0, 0, 0, 1)})
        found = ids(store.search(vector((0.65, 0.76, 0, 0)), scope=EVERYONE, limit=3))
        assert found[0] == 3
        assert len({1, 2, 3} & set(found)) >= 2

    @pytest.mark.parametrize("bad", [(0.0,) * 4, (float("nan"), 0, 0, 0), (float("inf"), 0, 0, 0)])
    def test_a_vector_without_direction_is_refused(
        self, world: VectorWorld, store: VectorStore, bad: tuple[float, ...]
    ) -> None:
        world.put(passage(1), passage(2))
        with pytest.raises(ZeroVector):
            fill(store, {1: X, 2: bad})
        with pytest.raises(ZeroVector):
            store.search(vector(bad), scope=EVERYONE, limit=1)
        assert store.count() == 0

    def test_equal_vectors_come_in_the_order_of_their_ids(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        order = [7, 3, 11, 5, 2, 13]
        world.put(*(passage(key) for key in order))
        for key in order:
            fill(store, {key: (0.3, 0.5, 0.7, 0.1)})
        found = store.search(vector((0.2, 0.9, 0.1, 0.4)), scope=EVERYONE, limit=4)
        assert ids(found) == [2, 3, 5, 7]

    def test_a_vector_is_replaced_not_added(self, world: VectorWorld, store: VectorStore) -> None:
        world.put(passage(1), passage(2))
        fill(store, {1: X, 2: Y})
        fill(store, {1: Z})
        assert store.count() == 2
        assert ids(store.search(vector(Z), scope=EVERYONE, limit=1)) == [1]

    def test_the_limit_may_exceed_what_is_there(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        world.put(passage(1))
        fill(store, {1: X})
        assert ids(store.search(vector(X), scope=EVERYONE, limit=1000)) == [1]
        assert store.search(vector(X), scope=EVERYONE, limit=0) == []

    def test_an_empty_store_finds_nothing(self, store: VectorStore) -> None:
        assert store.search(vector(X), scope=EVERYONE, limit=5) == []

    def test_deleted_vectors_are_not_found(self, world: VectorWorld, store: VectorStore) -> None:
        world.put(passage(1), passage(2))
        fill(store, {1: X, 2: Y})
        store.delete([1, 99])
        assert ids(store.search(vector(X), scope=EVERYONE, limit=5)) == [2]
        assert store.count() == 1

    def test_removed_passages_are_not_found(self, world: VectorWorld, store: VectorStore) -> None:
        world.put(passage(1), passage(2))
        fill(store, {1: X, 2: Y})
        assert len(store.search(vector(X), scope=EVERYONE, limit=5)) == 2
        world.remove(1)
        assert ids(store.search(vector(X), scope=EVERYONE, limit=5)) == [2]

    def test_a_dropped_store_is_empty_and_can_be_filled_again(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        world.put(passage(1))
        fill(store, {1: X})
        store.drop()
        assert store.count() == 0
        assert store.search(vector(X), scope=EVERYONE, limit=5) == []
        fill(store, {1: X})
        assert ids(store.search(vector(X), scope=EVERYONE, limit=5)) == [1]

    def test_ensure_keeps_what_is_there(self, world: VectorWorld, store: VectorStore) -> None:
        world.put(passage(1))
        fill(store, {1: X})
        store.ensure()
        assert store.count() == 1

    def test_a_change_by_another_instance_is_seen(
        self, world: VectorWorld, store: VectorStore
    ) -> None:
        world.put(passage(1), passage(2))
        fill(store, {1: X})
        assert ids(store.search(vector(X), scope=EVERYONE, limit=5)) == [1]
        other = world.open()
        fill(other, {2: X})
        other.delete([1])
        assert ids(store.search(vector(X), scope=EVERYONE, limit=5)) == [2]

    def test_health_tells_that_it_works(self, store: VectorStore) -> None:
        health = store.health()
        assert (health.available, health.reason) == (True, "")


class VectorScopeContract:
    """Tests that a vector store applies every part of a ``Scope``, as ``engine.scope_sql`` does."""

    @pytest.fixture
    def world(self) -> VectorWorld:
        """The world under test; subclasses override it."""
        pytest.fail("the subclass gives the world")

    @pytest.mark.parametrize(
        ("change", "scope", "is_seen"),
        [
            ({"expires_ms": NOW + 1}, {}, True),
            ({"expires_ms": NOW}, {}, False),
            ({"is_archived": True}, {}, False),
            ({"is_archived": True, "is_pinned": True}, {}, False),
            ({"session": "s1"}, {"session": "s1"}, True),
            ({"session": "s2"}, {"session": "s1"}, False),
            ({"session": ""}, {"session": ""}, True),
            ({"session": "s1"}, {}, True),
            ({}, {"types": frozenset({MemoryType.FACTUAL, MemoryType.SEMANTIC})}, True),
            ({}, {"types": frozenset({MemoryType.EPISODIC})}, False),
            ({"type": None}, {"types": frozenset({MemoryType.FACTUAL})}, False),
            ({"retained_ms": 500}, {"retained_after_ms": {MemoryType.FACTUAL: 500}}, True),
            ({"retained_ms": 499}, {"retained_after_ms": {MemoryType.FACTUAL: 500}}, False),
            ({"retained_ms": 0}, {"retained_after_ms": {MemoryType.EPISODIC: 500}}, True),
            (
                {"retained_ms": 499, "is_pinned": True},
                {"retained_after_ms": {MemoryType.FACTUAL: 500}},
                True,
            ),
            ({}, {"excluded": frozenset({1})}, False),
            ({}, {"excluded": frozenset({2})}, True),
            ({}, {"only": frozenset({1, 3})}, True),
            ({}, {"only": frozenset({2})}, False),
            ({}, {"only": frozenset()}, False),
            ({}, {"only": frozenset({1}), "excluded": frozenset({1})}, False),
            ({}, {"owners": frozenset()}, False),
            ({}, {"owners": frozenset({BOB})}, False),
            ({}, {"owners": frozenset({ALICE, BOB})}, True),
            ({}, {"owners": None}, True),
            ({"is_shared": True}, {"owners": frozenset({BOB})}, False),
            ({"is_shared": True}, {"owners": frozenset({BOB}), "include_shared": True}, True),
            ({"is_shared": True}, {"owners": frozenset(), "include_shared": True}, True),
            ({"vault": 5}, {}, False),
            ({"vault": 5}, {"owners": None}, False),
            ({"vault": 5, "is_shared": True}, {"include_shared": True}, False),
            ({"vault": 5}, {"vaults": frozenset({5})}, True),
            ({"vault": 5}, {"owners": frozenset(), "vaults": frozenset({5, 6})}, True),
            ({"vault": 5}, {"owners": None, "vaults": frozenset({6})}, False),
            ({}, {"owners": None, "vaults": frozenset({5})}, True),
            ({}, {"owners": frozenset(), "vaults": frozenset({5})}, False),
        ],
    )
    def test_a_passage_is_seen_only_within_the_scope(
        self,
        world: VectorWorld,
        change: dict[str, object],
        scope: dict[str, object],
        is_seen: bool,
    ) -> None:
        store = world.open()
        world.put(_changed(passage(1), change), passage(2, owner=77))
        fill(store, {1: X, 2: Y})
        asked = dataclasses.replace(OF_ALICE, **scope)  # type: ignore[arg-type]
        found = ids(store.search(vector(X), scope=asked, limit=5))
        assert (1 in found) == is_seen

    def test_a_changed_scope_column_is_seen_at_once(self, world: VectorWorld) -> None:
        store = world.open()
        world.put(passage(1))
        fill(store, {1: X})
        assert ids(store.search(vector(X), scope=OF_ALICE, limit=5)) == [1]
        world.put(dataclasses.replace(passage(1), is_archived=True))
        assert store.search(vector(X), scope=OF_ALICE, limit=5) == []
        world.put(dataclasses.replace(passage(1), owner=BOB))
        assert store.search(vector(X), scope=OF_ALICE, limit=5) == []
        assert ids(store.search(vector(X), scope=OF_BOB, limit=5)) == [1]


def _changed(original: Passage, change: dict[str, object]) -> Passage:
    return dataclasses.replace(original, **change)  # type: ignore[arg-type]
