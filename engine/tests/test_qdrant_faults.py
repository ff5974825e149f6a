"""What a search does when the server is down, slow, broken, or refuses."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import EngineError, Unavailable
from engine.net.client import HttpClient, Limits
from engine.qdrant.errors import QdrantFailed
from engine.qdrant.filters import filter_of, is_empty
from engine.qdrant.guard import Guard
from engine.qdrant.place import place_of
from engine.qdrant.server import QdrantServer, Search
from engine.qdrant.store import QdrantStore
from engine.testing import qdrant_world
from engine.testing.contracts_vectors import EVERYONE, X, fill, ids, passage, vector
from engine.testing.fake_qdrant import Fault
from engine.testing.qdrant_world import ALIAS, QdrantWorld, Way
from engine.testing.vector_world import SqliteWorld
from engine.types import Scope

IMPATIENT = Limits(connect_s=0.2, total_s=0.2, retries=0)


class Clock:
    """Time that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def world(tmp_path: Path) -> Iterator[QdrantWorld]:
    with qdrant_world.world(SqliteWorld(tmp_path / "index.db"), Way(follows=False)) as made:
        yield made


def guarded(world: QdrantWorld, clock: Clock) -> tuple[QdrantStore, Guard]:
    """A store with one passage there, whose searches wait a fifth of a second at most."""
    store = world.open()
    world.put(passage(1))
    fill(store, {1: X})
    world.mirror().follow()
    server = QdrantServer(world.server.place, world.http, quick=IMPATIENT)
    guard = Guard(server.ping, clock=clock)
    return QdrantStore(world.database.open(), world.mirror(), server, guard), guard


def search(store: QdrantStore) -> list[int]:
    return ids(store.search(vector(X), scope=EVERYONE, limit=5))


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(status=500), "qdrant_error"),
        (Fault(status=503), "qdrant_error"),
        (Fault(status=429), "qdrant_busy"),
        (Fault(status=429, retry_after="3"), "qdrant_busy"),
        (Fault(status=400), "qdrant_refused"),
        (Fault(status=404), "qdrant_missing"),
        (Fault(is_slow=True), "qdrant_timeout"),
        (Fault(breaks=True), "qdrant_unreachable"),
        (Fault(drops=True), "qdrant_unreachable"),
    ],
)
def test_every_fault_has_its_code_and_costs_little(
    world: QdrantWorld, fault: Fault, code: str
) -> None:
    store, _guard = guarded(world, Clock())
    assert search(store) == [1]
    world.qdrant.fail(fault, only="/points/query")
    begun = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        search(store)
    assert time.monotonic() - begun < 2.5
    assert caught.value.code == code


def test_a_server_that_is_down_is_told_as_such(world: QdrantWorld) -> None:
    store, _guard = guarded(world, Clock())
    world.qdrant.stop()
    with pytest.raises(QdrantFailed) as caught:
        search(store)
    assert caught.value.code == "qdrant_unreachable"


@pytest.mark.parametrize("key", ["", "wrong"])
def test_a_wrong_key_is_told_as_such(world: QdrantWorld, key: str) -> None:
    world.open()
    world.qdrant.api_key = "right"
    with pytest.raises(QdrantFailed) as caught:
        world.connect(api_key=key).ping()
    assert caught.value.code == "qdrant_auth"
    world.connect(api_key="right").ping()


def test_an_outage_costs_one_search_and_the_next_ones_nothing(world: QdrantWorld) -> None:
    clock = Clock()
    store, guard = guarded(world, clock)
    world.qdrant.fail(Fault(is_slow=True))
    with pytest.raises(QdrantFailed):
        search(store)
    asked = len(world.qdrant.calls)
    begun = time.monotonic()
    for _ in range(50):
        with pytest.raises(QdrantFailed):
            search(store)
    assert time.monotonic() - begun < 1.0
    assert len(world.qdrant.calls) == asked
    assert guard.failure is not None
    assert guard.failure.code == "qdrant_timeout"


def test_after_the_pause_one_probe_brings_it_back(
    world: QdrantWorld, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    store, guard = guarded(world, clock)
    world.qdrant.stop()
    with caplog.at_level(logging.WARNING, "engine.qdrant"):
        for _ in range(5):
            with pytest.raises(QdrantFailed):
                search(store)
        clock.now += 11
        for _ in range(5):
            with pytest.raises(QdrantFailed):
                search(store)
        world.qdrant.start()
        with pytest.raises(QdrantFailed):
            search(store)
        clock.now += 11
        assert search(store) == [1]
    assert guard.failure is None
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "Qdrant is out (qdrant_unreachable); searches go on without it",
        "Qdrant is back",
    ]


def test_a_collection_that_is_missing_closes_nothing(world: QdrantWorld) -> None:
    store, guard = guarded(world, Clock())
    world.qdrant.fail(Fault(status=404), only="/points/query")
    with pytest.raises(QdrantFailed):
        search(store)
    assert guard.failure is None


def test_health_does_a_real_search(world: QdrantWorld) -> None:
    store, _guard = guarded(world, Clock())
    health = store.health()
    assert health.available
    assert (health.detail["points"], health.detail["dim"], health.detail["behind"]) == (1, 4, 0)
    assert world.qdrant.calls[-2].path.endswith("/points/query")
    world.qdrant.fail(Fault(status=500), only="/points/query")
    health = store.health()
    assert (health.available, health.detail["code"]) == (False, "qdrant_error")


def test_before_the_first_build_the_store_says_so(world: QdrantWorld) -> None:
    durable = world.database.open()
    store = QdrantStore(durable, world.mirror(), world.server, Guard(world.server.ping))
    store.ensure()
    with pytest.raises(QdrantFailed) as caught:
        search(store)
    assert caught.value.code == "qdrant_building"
    assert store.health().detail["code"] == "qdrant_building"


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("qdrant.internal", 6333, "http://qdrant.internal:6333"),
        (" http://qdrant.internal/ ", 6333, "http://qdrant.internal:6333"),
        ("https://x.cloud.example:6334", 6333, "https://x.cloud.example:6334"),
        ("https://x.cloud.example/prefix/", 443, "https://x.cloud.example/prefix"),
        ("127.0.0.1", 7000, "http://127.0.0.1:7000"),
        ("[::1]", 6333, "http://[::1]:6333"),
        ("::1", 6333, "http://[::1]:6333"),
        ("localhost:7001", 6333, "http://localhost:7001"),
    ],
)
def test_a_host_is_a_name_an_address_or_a_url(host: str, port: int, url: str) -> None:
    assert place_of(host, port, ALIAS).url == url


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "metadata.google.internal", "user:pass@host", "ftp://host", "a b", ""],
)
def test_an_address_that_may_not_be_called_is_refused(host: str) -> None:
    with pytest.raises(QdrantFailed) as caught:
        place_of(host, 6333, ALIAS)
    assert caught.value.code == "qdrant_blocked"


@pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "a b", "x" * 201, "名前"])
def test_a_name_that_no_collection_can_have_is_refused(name: str) -> None:
    with pytest.raises(EngineError) as caught:
        place_of("localhost", 6333, name)
    assert caught.value.code == "collection_name"


def test_a_name_that_leads_to_a_metadata_address_is_not_called(world: QdrantWorld) -> None:
    import ipaddress

    http = HttpClient(resolve=lambda _host, _port: [ipaddress.ip_address("169.254.169.254")])
    server = QdrantServer(place_of("qdrant.example", 6333, ALIAS), http)
    with pytest.raises(QdrantFailed) as caught:
        server.ping()
    assert caught.value.code == "qdrant_blocked"
    http.close()


def test_the_whole_scope_is_inside_the_query(world: QdrantWorld) -> None:
    store, _guard = guarded(world, Clock())
    scope = Scope(now_ms=5, owners=frozenset({3, 4}), session="s", excluded=frozenset({9}))
    assert store.search(vector(X), scope=scope, limit=2) == []
    body = world.qdrant.asked("/points/query")[-1].body
    assert body["filter"] == {
        "must": [
            {"key": "is_archived", "match": {"value": False}},
            {"key": "expires_ms", "range": {"gt": 5.0}},
            {
                "must": [
                    {"key": "vault", "match": {"value": -1}},
                    {"key": "owner", "match": {"any": ["3", "4"]}},
                ]
            },
            {"key": "session", "match": {"value": "s"}},
        ],
        "must_not": [{"has_id": [9]}],
    }
    assert body["params"]["quantization"]["rescore"] is True


def test_a_scope_that_names_nobody_is_not_even_asked(world: QdrantWorld) -> None:
    store, _guard = guarded(world, Clock())
    asked = len(world.qdrant.calls)
    nobody = Scope(now_ms=5)
    assert is_empty(nobody)
    assert store.search(vector(X), scope=nobody, limit=2) == []
    assert len(world.qdrant.calls) == asked


@pytest.mark.parametrize(("quantization", "oversampling"), [("int8", 2.0), ("binary", 4.0)])
def test_quantised_points_are_oversampled_and_rescored(
    world: QdrantWorld, quantization: str, oversampling: float
) -> None:
    world.server.create("one", dim=4, quantization=quantization)
    asked = Search("one", vector(X), filter_of(EVERYONE), 3, quantization)
    assert world.server.search(asked) == []
    params = world.qdrant.asked("/points/query")[-1].body["params"]
    assert params["quantization"] == {"rescore": True, "oversampling": oversampling}
