"""No owner ever sees another's rows, whatever is sent, and a small one is not starved."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.types import Match, MemoryType, Mode
from memory import jobs
from memory.errors import NotFound, ServiceError
from memory.models import ApiKey, Job, Memory, Passage, VectorIndex, VectorMark
from memory.principal import SYSTEM, Principal
from memory.services import compaction, exports, jobrows, listing, memories
from memory.services.compaction import CompactRequest
from memory.services.drafts import MemoryDraft
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.services.status import engine_status
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember, Work

BOUNDED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
REFERENCES = st.sampled_from(
    [None, "", " ", "bob", " bob ", "BOB", "alice", "Default", "manager", "*", "%", "bob-id"]
)
QUERIES = st.one_of(
    st.sampled_from(["secret", "tea", "secret tea bob", "*", '"secret"', "owner:bob", "秘密"]),
    st.text(min_size=1, max_size=30),
)
SESSIONS = st.sampled_from([None, "", "s1", "bob-session", "%", "_"])
KINDS = st.lists(st.sampled_from(list(MemoryType)), max_size=2).map(tuple)


@pytest.fixture
def mixed(alice: Principal, bob: Principal, remember: Remember, work: Work) -> Principal:
    """Alice beside a bob who has more of everything; what is his holds the word ``secret``."""
    remember(alice, "alice drinks tea", key="drink", session_id="s1")
    remember(alice, "alice of old", key="old", created_at=days_ago(90))
    for place in range(12):
        memory = remember(
            bob,
            f"secret tea 秘密 {place}",
            key=f"drink{place}",
            session_id="bob-session" if place % 2 else "s1",
            type=list(MemoryType)[place % 4].value,
            created_at=days_ago(90 * (place % 2)),
        )
        memories.update(bob, memory.pk, {"content": f"secret tea 秘密 {place} again"})
    compaction.run_now(bob, CompactRequest(session="bob-session"))
    memories.delete(bob, Memory.objects.filter(api_key=bob.owner, key="drink0").get().pk)
    work()
    return alice


def _resolved(reference: str | None) -> str | None:
    return str(ApiKey.objects.get(name="bob").uid) if reference == "bob-id" else reference


@BOUNDED
@given(
    query=QUERIES,
    mode=st.sampled_from(list(Mode)),
    match=st.sampled_from(list(Match)),
    owner=REFERENCES,
    session=SESSIONS,
    reach=st.sampled_from(["session", "apiKey", "global"]),
    kinds=KINDS,
    all_owners=st.booleans(),
    purpose=st.sampled_from(["preview", "client", "evaluate"]),
)
def test_no_retrieval_ever_returns_another_owners_row(
    mixed: Principal,
    query: str,
    mode: Mode,
    match: Match,
    owner: str | None,
    session: str | None,
    reach: Any,
    kinds: tuple[MemoryType, ...],
    all_owners: bool,
    purpose: Any,
) -> None:
    request = RetrieveRequest(
        query,
        mode=mode,
        match=match,
        owner=_resolved(owner),
        session=session,
        reach=reach,
        types=kinds,
        all_owners=all_owners,
        limit=100,
        max_tokens=16_000,
        trace=True,
    )
    try:
        view = retrieve(mixed, request, purpose=purpose)
    except ServiceError as refused:
        assert refused.status == 422
        return
    assert {memory.api_key_id for memory in view.memories.values()} <= {mixed.owner}
    assert {hit.passage.owner for hit in view.retrieval.hits} <= {mixed.owner}
    assert view.retrieval.trace is not None
    traced = {entry.passage_id for s in view.retrieval.trace.stages for entry in s.entries}
    own = set(Memory.objects.filter(api_key=mixed.owner).values_list("passages__pk", flat=True))
    assert traced <= own


@BOUNDED
@given(
    owner=REFERENCES,
    session=SESSIONS,
    q=st.one_of(QUERIES, st.just("")),
    state=st.sampled_from(listing.STATES),
    kind=st.sampled_from([None, *MemoryType]),
    order=st.sampled_from(["created_at", "-created_at", "key", "-tokens", "type", "-updated_at"]),
)
def test_no_list_export_or_compaction_ever_shows_another_owners_row(
    mixed: Principal,
    owner: str | None,
    session: str | None,
    q: str,
    state: str,
    kind: str | None,
    order: str,
) -> None:
    owner = _resolved(owner)
    wanted = listing.MemoryFilter(
        owner=owner, session=session, q=q, state=state, type=kind, order=order, limit=200
    )
    page = listing.list_page(mixed, wanted)
    assert {row.memory.api_key_id for row in page.rows} <= {mixed.owner}
    assert listing.stats(mixed, owner).total == 2
    assert listing.sessions(mixed, owner) == ["s1"]
    assert b"secret" not in b"".join(exports.export_all(mixed, owner))
    for all_owners in (False, True):
        for kind_of in ("age", "tokens"):
            request = CompactRequest(
                kind=kind_of,
                owner=owner,
                all_owners=all_owners,
                session=session,
                max_tokens=0,
                older_than_days=1,
            )
            plans = compaction.preview(mixed, request)
            assert {plan.owner.pk for plan in plans} <= {mixed.owner}
            assert "secret" not in str([[i.memory.content for i in p.candidates] for p in plans])


def _calls(principal: Principal, reference: Any) -> Iterator[Any]:
    yield lambda: memories.get(principal, reference, trashed=True)
    yield lambda: memories.update(principal, reference, {"content": "taken over"})
    yield lambda: memories.delete(principal, reference)
    yield lambda: memories.delete(principal, reference, purge=True)
    yield lambda: memories.restore(principal, reference)
    yield lambda: memories.history(principal, reference)
    yield lambda: memories.revert(principal, reference, 1)
    yield lambda: listing.row(principal, reference)
    yield lambda: compaction.undo(principal, str(reference))


def test_every_row_of_another_owner_is_not_found_by_id(mixed: Principal) -> None:
    theirs = Memory.objects.exclude(api_key=mixed.owner)
    before = sorted(theirs.values_list("pk", "content", "trashed_at"))
    assert len(before) > 10
    for memory_id, _content, _trashed in before:
        for call in _calls(mixed, memory_id):
            with pytest.raises(NotFound):
                call()
    assert sorted(theirs.values_list("pk", "content", "trashed_at")) == before


def test_jobs_and_compactions_of_another_owner_are_not_found(
    mixed: Principal, bob: Principal
) -> None:
    theirs = Job.objects.filter(kind="compact", owner=bob.owner).get()
    assert compaction.recent(bob)
    assert compaction.recent(mixed) == []
    assert jobrows.list_jobs(mixed) == []
    for call in (jobrows.get, jobrows.cancel, jobrows.retry):
        with pytest.raises(NotFound):
            call(mixed, theirs.pk)
    with pytest.raises(NotFound):
        compaction.undo(mixed, str(compaction.recent(bob)[0].pk))


def test_a_compaction_that_waits_for_others_is_not_carried_out_by_a_key(
    mixed: Principal, remember: Remember
) -> None:
    queued = compaction.start(SYSTEM, CompactRequest(all_owners=True))
    done = compaction.run_now(mixed, CompactRequest(owner="bob"))
    assert [made.api_key_id for made in done.compactions] == [mixed.owner]
    queued.refresh_from_db()
    assert (queued.state, queued.attempts) == (Job.State.QUEUED, 0)


def test_a_compaction_of_another_owner_neither_shows_nor_stands_in_the_way(
    mixed: Principal, bob: Principal
) -> None:
    compaction.start(bob, CompactRequest())
    job = compaction.start(mixed, CompactRequest(owner="bob"))
    assert [seen.pk for seen in jobrows.list_jobs(mixed)] == [job.pk]
    with pytest.raises(ServiceError) as refused:
        compaction.start(mixed, CompactRequest(older_than_days=60))
    assert (refused.value.status, refused.value.code) == (409, "busy")


def test_a_job_that_is_started_again_is_never_one_of_another_owner(
    mixed: Principal, bob: Principal
) -> None:
    mine = Job(kind="compact", owner_id=mixed.owner, dedupe_key="compact", created_at=days_ago(1))
    mine.state = Job.State.FAILED
    mine.save()
    jobs.enqueue(jobs.Order("compact", dedupe_key="compact", owner_id=bob.owner))
    with pytest.raises(ServiceError) as refused:
        jobrows.retry(mixed, mine.pk)
    assert (refused.value.status, refused.value.code) == (409, "busy")


def test_engine_status_and_figures_count_only_what_belongs_to_the_key(
    mixed: Principal, bob: Principal, manager: Principal
) -> None:
    ask(bob, "secret tea", mode=Mode.VECTOR)
    mine, everything = engine_status(mixed), engine_status(manager)
    own = Passage.objects.filter(owner=mixed.owner).count()
    assert (mine.coverage.passages, mine.coverage.indexed) == (own, own)
    assert everything.coverage.passages == Passage.objects.count() > own
    assert (mine.cache_misses, mine.cache_size, listing.stats(mixed).cache_misses) == (0, 0, 0)
    assert everything.cache_misses > 0
    VectorMark.objects.create(
        index=VectorIndex.objects.get(),
        passage=Passage.objects.filter(owner=bob.owner)[0],
        error="invalid_text",
    )
    covered = engine_status(mixed).coverage
    assert (covered.pending, covered.failed, covered.percent) == (0, 0, 100.0)
    assert engine_status(bob).coverage.failed == 1


@pytest.mark.parametrize("mode", [Mode.VECTOR, Mode.HYBRID], ids=str)
def test_vector_search_02_03_a_small_owner_beside_a_huge_nearer_one_gets_its_five(
    alice: Principal, bob: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    crowd = ApiKey.objects.get(name="alice")
    memories.store_many(
        alice, crowd, [MemoryDraft("green tea please", f"k{place}") for place in range(200)]
    )
    for place in range(5):
        remember(bob, f"green tea with {place} strange words nobody asked for")
    work()
    assert len(ask(bob, "green tea please", mode=mode)) == 5
    assert set(ask(alice, "green tea please", mode=mode, limit=100)) == {"green tea please"}


def test_an_owner_nobody_has_is_not_found_for_a_manager(manager: Principal) -> None:
    with pytest.raises(NotFound):
        ask(manager, owner="nobody")
    with pytest.raises(NotFound):
        listing.list_page(manager, listing.MemoryFilter(owner=str(uuid.uuid4())))


def test_preview_08_only_a_manager_who_asks_searches_every_owner(
    alice: Principal, bob: Principal, manager: Principal, remember: Remember
) -> None:
    remember(alice, "tea of alice")
    remember(bob, "tea of bob")
    assert ask(alice, all_owners=True) == ["tea of alice"]
    assert ask(manager) == []
    assert ask(manager, owner="bob") == ["tea of bob"]
    assert sorted(ask(manager, all_owners=True)) == ["tea of alice", "tea of bob"]
