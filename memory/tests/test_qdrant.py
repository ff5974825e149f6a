"""Qdrant switched on: filled from the vectors that are there, kept in step, searched alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.testing.fake_qdrant import FakeQdrant, serving
from engine.testing.fakes import FakeEmbedding
from engine.types import MemoryType
from memory import qdrant_store, wiring
from memory.errors import Forbidden, Invalid
from memory.models import AuditEntry, Job, Memory
from memory.principal import SYSTEM, Principal
from memory.services import (
    embedding,
    memories,
    mirroring,
    qdrant,
    reindex,
    settings,
    status,
)
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember, Work
from memory.tests.qdrant_server import ALIAS, by_meaning, local_name, payloads, switch_on


@pytest.fixture
def server() -> Iterator[FakeQdrant]:
    with serving() as made:
        yield made


def test_switching_it_on_brings_what_is_there_without_embedding_again(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    for text in ("likes green tea", "drives to work", "reads novels"):
        remember(alice, text)
    work()
    index = embedding.active_index()
    assert index is not None
    source = wiring.source_for(index)
    assert source is not None
    fake: Any = source
    while not isinstance(fake, FakeEmbedding):
        fake = fake._source
    embedded = len(fake.calls)
    switch_on(server)
    work()
    assert len(fake.calls) == embedded
    assert len(payloads(server)) == 3
    found, store, degraded = by_meaning(alice, "green tea")
    assert (found[0], store, degraded) == ("likes green tea", "qdrant", [])


def test_every_change_reaches_it(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    memory = remember(alice, "likes green tea", key="drink")
    work()
    switch_on(server)
    work()
    memories.update(alice, memory.pk, {"is_pinned": True, "session_id": "s1"})
    work()
    (payload,) = payloads(server).values()
    assert (payload["is_pinned"], payload["session"]) == (True, "s1")
    memories.update(alice, memory.pk, {"content": "likes oolong"})
    work()
    (changed,) = payloads(server).values()
    assert changed["text_hash"] != payload["text_hash"]
    remember(alice, "drives to work", key="car")
    work()
    assert len(payloads(server)) == 2
    memories.delete(alice, memory.pk)
    work()
    assert len(payloads(server)) == 1
    memories.restore(alice, memory.pk)
    work()
    assert len(payloads(server)) == 2


def test_no_text_of_a_memory_leaves_for_qdrant(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "the launch code is swordfish", key="secret-key", session_id="s")
    work()
    switch_on(server)
    work()
    by_meaning(alice, "launch code")
    assert server.calls
    assert "swordfish" not in str(server.calls)
    assert "secret-key" not in str(server.calls)


def test_a_search_sees_what_is_not_there_yet(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    tea = remember(alice, "likes green tea", key="a")
    work()
    switch_on(server)
    work()
    remember(alice, "likes black tea", key="b")
    Job.objects.filter(kind="mirror", state=Job.State.QUEUED).delete()
    memories.delete(alice, tea.pk)
    Job.objects.filter(kind="mirror", state=Job.State.QUEUED).delete()
    found, store, _degraded = by_meaning(alice, "tea")
    assert (found, store) == (["likes black tea"], "qdrant")
    assert len(payloads(server)) == 1


def test_owners_sessions_types_expiry_and_retention_hold(
    alice: Principal, bob: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "tea of alice", key="a")
    remember(alice, "tea of a session", key="s", session_id="s1")
    remember(alice, "tea that was an episode", key="e", type="episodic")
    remember(alice, "tea that has expired", key="x", expires_at=days_ago(1))
    remember(alice, "tea of long ago", key="o", retained_at=days_ago(60))
    remember(bob, "tea of bob", key="b")
    work()
    switch_on(server)
    work()
    assert len(payloads(server)) == 6
    found = by_meaning(alice, "tea")[0]
    assert sorted(found) == ["tea of a session", "tea of alice", "tea that was an episode"]
    assert by_meaning(bob, "tea")[0] == ["tea of bob"]
    assert by_meaning(alice, "tea", session="s1")[0] == ["tea of a session"]
    episodes = by_meaning(alice, "tea", types=(MemoryType.EPISODIC,))[0]
    assert episodes == ["tea that was an episode"]
    settings.update(SYSTEM, {"retentionDays": 365})
    assert "tea of long ago" in by_meaning(alice, "tea")[0]


def test_what_a_cascade_deletes_leaves_no_point(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "tea of alice")
    work()
    switch_on(server)
    work()
    Memory.objects.all().delete()
    work()
    assert payloads(server) == {}


def test_another_model_is_another_collection_under_the_same_name(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes green tea")
    work()
    switch_on(server)
    work()
    before = server.shards.aliases[ALIAS]
    settings.update(SYSTEM, {"localModel": "use-multilingual"})
    assert by_meaning(alice, "tea")[1] == "qdrant"
    work()
    after = server.shards.aliases[ALIAS]
    assert after != before
    assert list(server.shards.collections) == [after]
    assert server.shards.collections[after].config["vectors"]["size"] == 48
    assert by_meaning(alice, "tea")[:2] == (["likes green tea"], "qdrant")


def test_another_quantisation_is_built_beside_the_live_collection(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes green tea")
    work()
    switch_on(server)
    work()
    before = server.shards.aliases[ALIAS]
    settings.update_qdrant(SYSTEM, {"quantization": "binary"})
    assert by_meaning(alice, "tea")[1] == "qdrant"
    work()
    after = server.shards.aliases[ALIAS]
    assert after != before
    assert "binary" in server.shards.collections[after].config["quantization_config"]
    assert by_meaning(alice, "tea")[:2] == (["likes green tea"], "qdrant")


def test_reindexing_everything_builds_it_again(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant, manager: Principal
) -> None:
    remember(alice, "likes green tea")
    work()
    switch_on(server)
    work()
    before = server.shards.aliases[ALIAS]
    reindex.start(manager, force=True)
    assert Job.objects.filter(kind="backfill", state=Job.State.QUEUED).exists()
    work()
    assert server.shards.aliases[ALIAS] != before
    job = Job.objects.filter(kind="backfill").latest("created_at")
    assert (job.state, job.done, job.total) == ("succeeded", 1, 1)


def test_switched_off_it_is_not_asked_and_on_again_it_goes_on(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes green tea", key="a")
    work()
    switch_on(server)
    work()
    settings.update_qdrant(SYSTEM, {"enabled": False})
    assert settings.get().vector_store == "auto"
    asked = len(server.calls)
    remember(alice, "likes black tea", key="b")
    work()
    assert by_meaning(alice, "tea")[1:] == (local_name(), [])
    assert not mirroring.tend()
    assert len(server.calls) == asked
    before = server.shards.aliases[ALIAS]
    settings.update_qdrant(SYSTEM, {"enabled": True})
    work()
    assert server.shards.aliases[ALIAS] == before
    assert len(payloads(server)) == 2


def test_the_choice_of_the_store_and_the_switch_are_one(
    alice: Principal, server: FakeQdrant
) -> None:
    with pytest.raises(Invalid):
        settings.update(SYSTEM, {"vectorStore": "qdrant"})
    settings.update_qdrant(SYSTEM, {"host": "127.0.0.1", "port": server.port})
    assert settings.update(SYSTEM, {"vectorStore": "qdrant"}).qdrant_enabled
    assert not settings.update(SYSTEM, {"vectorStore": "in-process"}).qdrant_enabled


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"host": "169.254.169.254"}, "host"),
        ({"host": "http://user:secret@h"}, "host"),
        ({"host": "h", "collection": "a/b"}, "collection"),
    ],
)
def test_a_place_that_cannot_be_is_refused(
    first_start: None, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        settings.update_qdrant(SYSTEM, {"enabled": True, **changes})
    assert list(refused.value.fields) == [field]
    assert not settings.get().qdrant_enabled


def test_a_clean_up_counts_what_it_removes(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant, manager: Principal
) -> None:
    remember(alice, "likes green tea", key="a")
    remember(alice, "gone by now", key="b", expires_at=days_ago(1))
    remember(alice, "of long ago", key="c", retained_at=days_ago(300))
    work()
    switch_on(server)
    work()
    collection = server.shards.collections[server.shards.aliases[ALIAS]]
    size = collection.config["vectors"]["size"]
    collection.upsert({"points": [{"id": 999, "vector": [1.0] * size, "payload": {}}]})
    done = qdrant.clean_up(manager)
    assert (done.tried.ok, done.expired, done.strays, done.deleted) == (True, 1, 1, 2)
    assert len(payloads(server)) == 2
    row = AuditEntry.objects.get(action="qdrant.cleanup")
    assert row.detail == {"expired": 1, "strays": 1}
    assert qdrant.clean_up(manager).deleted == 0


def test_only_managers_touch_it(alice: Principal) -> None:
    for call in (qdrant.health, qdrant.clean_up):
        with pytest.raises(Forbidden):
            call(alice)
    with pytest.raises(Forbidden):
        qdrant.search(alice, "tea", 5)


def test_a_key_never_leaves_for_the_status(
    alice: Principal, server: FakeQdrant, manager: Principal
) -> None:
    server.api_key = "qd-secret"
    switch_on(server, apiKey="qd-secret")
    assert qdrant.probe(settings.get()).ok
    assert "qd-secret" not in str(status.engine_status(manager))
    assert "qd-secret" not in str(settings.get())
    settings.update_qdrant(SYSTEM, {"apiKey": "wrong"})
    assert qdrant.probe(settings.get()).error == "qdrant_auth"


def test_a_new_place_is_a_connection_of_its_own(first_start: None, server: FakeQdrant) -> None:
    switch_on(server)
    first = qdrant_store.connection(settings.get())
    assert qdrant_store.connection(settings.get()) is first
    settings.update_qdrant(SYSTEM, {"collection": "other"})
    assert qdrant_store.connection(settings.get()) is not first
