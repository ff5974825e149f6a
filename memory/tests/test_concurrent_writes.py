"""Several clients write at once; the same on SQLite and on Postgres."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from memory.models import ApiKey, Job, Memory, MemoryUse, Passage
from memory.principal import Principal
from memory.services import batches, clearing, compaction, memories, retrieval
from memory.services.compaction import CompactRequest
from memory.services.drafts import MemoryDraft
from memory.services.retrieval import RetrieveRequest
from memory.services.store import items
from memory.services.store.items import ItemSearch
from memory.services.store.places import Place
from memory.tests.conftest import Remember

pytestmark = pytest.mark.django_db(transaction=True)

CLIENTS = 6


def at_once(calls: Sequence[Callable[[], object]]) -> list[object]:
    """The answers of calls that run beside each other, each with a connection of its own."""

    def run(call: Callable[[], object]) -> object:
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(run, calls))


def test_one_key_becomes_one_memory_however_many_store_it(alice: Principal) -> None:
    def store(number: int) -> object:
        draft = MemoryDraft("likes tea", key="drink", metadata={f"client{number}": True})
        return memories.create(alice, draft)[1]

    created = at_once([lambda number=number: store(number) for number in range(12)])  # type: ignore[misc]
    assert created.count(True) == 1
    stored = Memory.objects.get(key="drink")
    assert stored.metadata == {f"client{number}": True for number in range(12)}
    assert Passage.objects.count() == 1
    assert Job.objects.filter(state__in=Job.ACTIVE, dedupe_key="vectors").count() == 1


def test_batches_with_the_same_keys_in_other_orders_do_not_wait_for_ever(
    alice: Principal,
) -> None:
    owner = ApiKey.objects.get(name="alice")
    keys = [f"key{number}" for number in range(20)]

    def store(names: list[str]) -> object:
        with transaction.atomic():
            drafts = [MemoryDraft(f"about {name}", key=name) for name in names]
            return len(memories.store_many(alice, owner, drafts))

    orders = [keys if turn % 2 else keys[::-1] for turn in range(8)]
    stored = at_once([lambda names=names: store(names) for names in orders])  # type: ignore[misc]
    assert stored == [20] * 8
    assert Memory.objects.count() == Passage.objects.count() == 20


def test_uses_are_counted_once_for_each_search(alice: Principal, remember: Remember) -> None:
    for number in range(10):
        remember(alice, f"tea of the {number}th harvest", key=f"tea{number}")

    def search(query: str) -> object:
        request = RetrieveRequest(query)
        return len(retrieval.retrieve(alice, request, purpose="client").memories)

    queries = ["tea harvest", "harvest of tea"] * 6
    found = at_once([lambda query=query: search(query) for query in queries])  # type: ignore[misc]
    assert found == [10] * 12
    counts = MemoryUse.objects.values_list("access_count", flat=True)
    assert sum(counts) == 120


def test_an_edit_beside_a_compaction_is_not_lost(alice: Principal, remember: Remember) -> None:
    rows = [remember(alice, f"Note {n}. It has more to say.", key=f"note{n}") for n in range(8)]

    def compact() -> object:
        request = CompactRequest(kind="tokens", max_tokens=0)
        return compaction.run_now(alice, request).job.state

    def edit(memory: Memory) -> object:
        return memories.update(alice, memory.pk, {"content": f"edited {memory.key}"}).content

    calls = [compact, *[lambda row=row: edit(row) for row in rows]]
    state, *edited = at_once(calls)
    assert state == Job.State.SUCCEEDED
    assert edited == [f"edited note{n}" for n in range(8)]
    for row in rows:
        row.refresh_from_db()
        versions = {row.content, *row.revisions.values_list("content", flat=True)}
        assert f"edited {row.key}" in versions
        assert len(versions) == row.revision


def test_batches_beside_reads_that_renew_and_clears_do_not_wait_for_ever(alice: Principal) -> None:
    for number in range(40):
        items.put(alice, Place(("n",), f"k{number}"), {"text": f"tea {number}"}, ttl=60)
    ids = [str(pk) for pk in Memory.objects.order_by("-pk").values_list("pk", flat=True)]

    def change() -> object:
        outcomes = batches.carry_out(alice, [batches.Change(pk, {"is_pinned": True}) for pk in ids])
        return len(outcomes)

    def renew() -> object:
        return len(items.search(alice, ItemSearch(limit=40)))

    assert at_once([change, renew] * 4) == [40] * 8
    changed, _cleared, again = at_once(
        [change, lambda: clearing.clear(alice, clearing.Wanted()), change]
    )
    assert (changed, again) == (40, 40), "each item is told what became of it"
    assert not Memory.objects.filter(trashed_at__isnull=True).exists()
