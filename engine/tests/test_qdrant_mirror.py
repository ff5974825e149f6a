"""The mirror: building a collection, following the log, going on after a stop, switching."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import Cancelled
from engine.qdrant import mirror as mirroring
from engine.qdrant.errors import QdrantFailed
from engine.qdrant.mirror import Mirror, Mirrored
from engine.qdrant.store import QdrantStore
from engine.testing import postgres_server, qdrant_world
from engine.testing.contracts_vectors import (
    ALICE,
    BOB,
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
from engine.testing.fake_qdrant import Fault
from engine.testing.qdrant_world import ALIAS, QdrantWorld, Way
from engine.testing.vector_world import InProcessWorld, PostgresWorld, SqliteWorld
from engine.types import Signature

BEHIND = Way(follows=False)
MANY = mirroring.BATCH + 20


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server.running() as running:
        yield running.url()


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantWorld]:
    database: InProcessWorld = SqliteWorld(tmp_path / "index.db")
    if request.param == "postgres":
        database = PostgresWorld(str(request.getfixturevalue("postgres")))
    with qdrant_world.world(database, BEHIND) as made:
        yield made


def stored(world: QdrantWorld) -> list[int]:
    """Ids of the points of the live collection, without the marker."""
    name = world.qdrant.shards.aliases[ALIAS]
    found = world.qdrant.shards.collections[name].scroll({"limit": 10_000})["points"]
    return [point["id"] for point in found if point["id"]]


def found(store: QdrantStore) -> list[int]:
    return ids(store.search(vector(X), scope=EVERYONE, limit=1000))


def filled(world: QdrantWorld, count: int) -> Mirror:
    """Durable vectors, and a mirror that has not brought them anywhere."""
    durable = world.database.open()
    world.put(*(passage(key) for key in range(1, count + 1)))
    fill(durable, {key: (1.0, key / 1e4, 0.0, 0.0) for key in range(1, count + 1)})
    return world.mirror()


def test_a_build_brings_everything_and_the_alias_names_it(world: QdrantWorld) -> None:
    mirror = filled(world, MANY)
    told: list[tuple[int, int]] = []
    mirror.build(lambda done, total: told.append((done, total)))
    assert stored(world) == list(range(1, MANY + 1))
    live = mirror.live()
    assert live is not None
    assert world.qdrant.shards.aliases == {ALIAS: live.name}
    assert live.name.startswith(f"{ALIAS}_")
    assert live.name.endswith("_1")
    assert told == [(mirroring.BATCH, MANY), (MANY, MANY)]


def test_filters_have_their_indexes_before_the_first_point_comes(world: QdrantWorld) -> None:
    filled(world, 3).build()
    made = [c for c in world.qdrant.calls if c.method == "PUT"]
    kinds = ["index" if c.path.endswith("/index") else c.path.split("/")[-1] for c in made]
    assert kinds[0].startswith(ALIAS)
    assert set(kinds[1:-2]) == {"index"}
    assert kinds[-2:] == ["points", "points"]
    (name,) = world.qdrant.shards.collections
    schema = world.qdrant.shards.collections[name].schema
    assert schema["owner"] == "keyword"
    assert {"vault", "session", "type", "is_shared", "expires_ms"} < set(schema)


def test_the_log_is_followed_and_the_place_in_it_kept(world: QdrantWorld) -> None:
    store = world.open()
    world.put(passage(1), passage(2), passage(3))
    fill(store, {1: X, 2: Y, 3: Z})
    mirror = world.mirror()
    assert mirror.behind(10) > 0
    assert mirror.follow() == 3
    assert (stored(world), mirror.behind(10)) == ([1, 2, 3], 0)
    store.delete([2])
    world.remove(3)
    assert world.mirror().follow() == 2
    assert stored(world) == [1]
    assert world.mirror().follow() == 0


def test_what_is_not_mirrored_yet_is_found_and_what_is_gone_is_not(world: QdrantWorld) -> None:
    store = world.open()
    world.put(passage(1), passage(2))
    fill(store, {1: X, 2: Y})
    world.mirror().follow()
    world.put(passage(3))
    fill(store, {3: X})
    store.delete([1])
    assert stored(world) == [1, 2]
    assert found(store) == [3, 2]


def test_a_build_that_was_stopped_goes_on_where_it_was(world: QdrantWorld) -> None:
    mirror = filled(world, MANY)

    def stop(_done: int, _total: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        mirror.build(stop)
    assert world.qdrant.shards.aliases == {}
    sent = len(world.qdrant.asked("/points"))
    world.remove(5)
    again = world.mirror()
    again.build()
    assert stored(world) == [key for key in range(1, MANY + 1) if key != 5]
    assert len(world.qdrant.shards.collections) == 1
    rest, marks = 1, 1
    assert len(world.qdrant.asked("/points")) - sent == rest + marks


def test_a_follow_that_was_stopped_loses_nothing(world: QdrantWorld) -> None:
    store = world.open()
    world.put(*(passage(key) for key in range(1, MANY + 1)))
    fill(store, dict.fromkeys(range(1, MANY + 1), X))

    def stop(_done: int, _total: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        world.mirror().follow(stop)
    assert len(stored(world)) == mirroring.BATCH
    assert len(found(store)) == MANY
    assert world.mirror().follow() == MANY
    assert len(stored(world)) == MANY


def test_an_outage_loses_nothing(world: QdrantWorld) -> None:
    store = world.open()
    world.put(passage(1))
    fill(store, {1: X})
    world.qdrant.stop()
    with pytest.raises(QdrantFailed) as caught:
        world.mirror().follow()
    assert caught.value.code == "qdrant_unreachable"
    world.put(passage(2))
    fill(store, {2: Y})
    world.qdrant.start()
    assert world.mirror().follow() == 2
    assert stored(world) == [1, 2]


def test_a_server_that_says_too_busy_is_asked_again_for_the_same(world: QdrantWorld) -> None:
    store = world.open()
    world.put(passage(1))
    fill(store, {1: X})
    world.qdrant.fail(Fault(status=429, retry_after="1"), only="/points")
    with pytest.raises(QdrantFailed) as caught:
        world.mirror().follow()
    assert caught.value.code == "qdrant_busy"
    world.qdrant.fail(None)
    assert world.mirror().follow() == 1


def test_a_log_that_was_pruned_too_far_asks_for_a_new_build(world: QdrantWorld) -> None:
    store = world.open()
    world.put(passage(1), passage(2))
    fill(store, {1: X, 2: Y})
    world.mirror().follow()
    store.delete([1])
    world.put(passage(3))
    fill(store, {3: Z})
    world.database.prune()
    mirror = world.mirror()
    assert mirror.follow() == 0
    assert mirror.needs_build()
    with pytest.raises(QdrantFailed) as caught:
        found(store)
    assert caught.value.code == "qdrant_behind"
    mirror.build()
    assert stored(world) == [2, 3]
    assert not mirror.needs_build()
    assert sorted(found(store)) == [2, 3]


def test_strays_are_removed_at_the_end_of_a_build(world: QdrantWorld) -> None:
    mirror = filled(world, 3)
    mirror.build()
    collection = world.qdrant.shards.collections[world.qdrant.shards.aliases[ALIAS]]
    collection.upsert({"points": [{"id": 99, "vector": list(X), "payload": {}}]})
    live = mirror.live()
    assert live is not None
    assert mirror.remove_strays(live.name) == 1
    assert stored(world) == [1, 2, 3]


def test_another_quantisation_is_built_beside_and_switched_to(world: QdrantWorld) -> None:
    mirror = filled(world, 3)
    mirror.build()
    before = mirror.live()
    world.way = Way(follows=False, quantization="int8")
    other = world.mirror()
    assert other.needs_build()
    other.build()
    after = other.live()
    assert before is not None
    assert after is not None
    assert after.name != before.name
    assert list(world.qdrant.shards.collections) == [after.name]
    assert world.qdrant.shards.aliases == {ALIAS: after.name}
    scalar = world.qdrant.shards.collections[after.name].config["quantization_config"]["scalar"]
    assert scalar == {"type": "int8", "quantile": 0.99, "always_ram": True}


def test_another_dimension_is_another_collection_under_the_same_alias(world: QdrantWorld) -> None:
    filled(world, 3).build()
    narrow = Signature("local", "narrow", "1", 2)
    durable = world.database.open(narrow, 2)
    fill(durable, {1: (1.0, 0.0), 2: (0.0, 1.0)})
    mirror = world.mirror(narrow, 2)
    assert mirror.needs_build()
    earlier = world.qdrant.shards.aliases[ALIAS]
    mirror.build()
    assert world.qdrant.shards.aliases[ALIAS] != earlier
    assert earlier not in world.qdrant.shards.collections
    assert stored(world) == [1, 2]
    assert world.mirror().live() is None


def test_a_collection_that_was_deleted_on_the_server_is_built_again(world: QdrantWorld) -> None:
    mirror = filled(world, 3)
    mirror.build()
    (name,) = world.qdrant.shards.collections
    world.qdrant.shards.drop(name)
    assert mirror.needs_build()
    mirror.build()
    assert stored(world) == [1, 2, 3]


def test_a_restored_database_does_not_trust_a_collection_that_knows_more(
    world: QdrantWorld,
) -> None:
    mirror = filled(world, 3)
    mirror.build()
    live = mirror.live()
    assert live is not None
    mirror.states.move(live.name, live.position - 2)
    assert mirror.needs_build()


def test_a_collection_of_another_system_keeps_its_name(world: QdrantWorld) -> None:
    world.server.create(ALIAS, dim=4, quantization="none")
    with pytest.raises(QdrantFailed) as caught:
        filled(world, 1).build()
    assert caught.value.code == "qdrant_name_taken"
    assert list(world.qdrant.shards.collections) == [ALIAS]


def test_a_stale_payload_shows_nothing_that_may_not_be_seen(world: QdrantWorld) -> None:
    store = world.open()
    world.put(passage(1, ALICE), passage(2, BOB))
    fill(store, {1: X, 2: X})
    mirror = world.mirror()
    mirror.follow()
    live = mirror.live()
    assert live is not None
    (row,) = mirror.rows.read([2])
    forged = dataclasses.replace(row, payload={**row.payload, "owner": str(ALICE)})
    world.server.upsert(live.name, [forged], [vector(X)])
    assert ids(store.search(vector(X), scope=OF_ALICE, limit=10)) == [1]


def test_a_point_of_an_older_text_counts_with_its_new_vector(world: QdrantWorld) -> None:
    store = world.open()
    world.put(passage(1), passage(2))
    fill(store, {1: X, 2: Y})
    mirror = world.mirror()
    mirror.follow()
    live = mirror.live()
    assert live is not None
    (row,) = mirror.rows.read([1])
    old = dataclasses.replace(row, payload={**row.payload, "text_hash": "old"})
    world.server.upsert(live.name, [old], [vector(Y)])
    scores = {c.passage_id: c.score for c in store.search(vector(Y), scope=EVERYONE, limit=10)}
    assert scores == pytest.approx({2: 1.0, 1: 0.0}, abs=1e-6)


def test_everything_at_a_place_can_be_forgotten(world: QdrantWorld) -> None:
    mirror = filled(world, 3)
    mirror.build()
    mirror.forget()
    assert (world.qdrant.shards.collections, world.qdrant.shards.aliases) == ({}, {})
    assert mirror.live() is None


def test_centred_points_are_scored_as_the_index_in_this_process_does(tmp_path: Path) -> None:
    means = {"en": vector((0.6, 0.0, 0.0, 0.3)), "ja": vector((0.0, 0.5, 0.2, 0.0))}
    way = Way(follows=True, centred=True, means=means)
    with qdrant_world.world(SqliteWorld(tmp_path / "index.db"), way) as world:
        from engine.vectors.state import Options

        world.database.options = Options(centred=True, means=means)
        store, near = world.open(), world.database.open()
        world.put(passage(1), passage(2), passage(3))
        rows = {1: vector((0.9, 0.1, 0.1, 0.4)), 2: vector((0.2, 0.9, 0.3, 0.1)), 3: vector(Z)}
        languages = {1: "en", 2: "ja", 3: "other"}
        store.upsert(rows, hashes={key: f"hash-{key}" for key in rows}, languages=languages)
        for language in ("en", "ja", "other"):
            asked = vector((0.5, 0.4, 0.3, 0.2))
            expected = near.search(asked, scope=EVERYONE, limit=3, language=language)
            answer = store.search(asked, scope=EVERYONE, limit=3, language=language)
            assert ids(answer) == ids(expected)
            assert [c.score for c in answer] == pytest.approx([c.score for c in expected], abs=1e-5)


def test_a_mirror_says_what_it_mirrors() -> None:
    what = Mirrored(7, Signature("local", "fake", "1", 4), "binary")
    assert (what.index_id, what.quantization, what.centred) == (7, "binary", False)
