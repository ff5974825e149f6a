"""What every memory backend keeps. Subclass, and give a ``backend`` fixture."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from engine.errors import BackendFailed
from engine.protocols import MemoryBackend
from engine.records import Changes, Draft, Filter, Record, Search

TEA = Draft(
    key="preference:tea",
    content="Alice drinks green tea in the morning",
    type="factual",
    owner="alice",
    session="s1",
    metadata={"category": "preference", "tags": ["tea", "朝"], "depth": {"n": 1.5, "ok": True}},
    expires_at=datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC),
)
ODD_TEXTS = (
    "two\nlines\n\nand a gap",
    "---\nkey: value\n---\nnot front matter",
    '"quotes" \\ back: slash # and: colons',
    "我喜欢喝咖啡。毎朝コーヒーを飲みます。",
    "emoji 😀👩‍👩‍👧‍👦 and \u2028 separators \u00a0 there",
    "trailing space \nand a tab\t\n",
    "x" * 5_000,
)
ODD_KEYS = (
    "../../etc/x",
    "/etc/passwd",
    "a/b/c",
    "..",
    ".hidden",
    ".obsidian/app",
    "C:\\Windows\\x",
    "nul",
    "key: with # marks | and [[links]]",
    "咖啡 preference",
    "k" * 400,
    "% ? & = +",
)
ODD_IDS = (
    "",
    ".",
    "..",
    "../x.md",
    "/etc/passwd",
    "a/../../x.md",
    "a\0b.md",
    "%2e%2e/x.md",
    "..\\x.md",
    ".obsidian/app.md",
    ".OBSIDIAN/app.md",
    "con.md",
    "x" * 700,
    "\ud800.md",
    "?query=x",
    "#",
)


def content_of(found: Record | None) -> str | None:
    """The text of a record, None without one."""
    return None if found is None else found.content


class BackendContract:
    """Tests of the protocol ``MemoryBackend``."""

    def who(self, name: str) -> str:
        """The id of an owner; subclasses whose owners have to exist override it."""
        return name

    def in_thread(self, create: Callable[[Draft], Record]) -> Callable[[Draft], Record]:
        """A call that a thread makes, with what has to be tidied up after it."""
        return create

    def tea(self) -> Draft:
        """A memory with every field."""
        return replace(TEA, owner=self.who(TEA.owner))

    @pytest.fixture
    def backend(self) -> MemoryBackend:
        """The backend under test; subclasses override it."""
        pytest.fail("the subclass gives the backend")

    def test_it_has_a_name(self, backend: MemoryBackend) -> None:
        assert backend.id
        assert backend.display_name

    def test_it_gets_ready_and_lets_go(self, backend: MemoryBackend) -> None:
        backend.initialize()
        backend.shutdown()
        assert backend.create(self.tea()).content == TEA.content

    def test_what_was_created_is_there_as_it_was_given(self, backend: MemoryBackend) -> None:
        made = backend.create(self.tea())
        found = backend.get(made.id)
        assert found is not None
        for record in (made, found):
            assert record.id == made.id
            assert (record.key, record.content, record.type) == (TEA.key, TEA.content, TEA.type)
            assert (record.owner, record.session) == (self.who(TEA.owner), TEA.session)
            assert record.metadata == TEA.metadata
            assert record.expires_at == TEA.expires_at

    def test_it_tells_when_a_memory_was_made(self, backend: MemoryBackend) -> None:
        found = backend.get(backend.create(self.tea()).id)
        assert found is not None
        assert found.created_at is not None
        assert found.updated_at is not None
        assert found.updated_at >= found.created_at

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_any_text_comes_back_as_it_was(self, backend: MemoryBackend, text: str) -> None:
        made = backend.create(
            Draft("odd", text, owner=self.who("alice"), metadata={"note": text[:200]})
        )
        found = backend.get(made.id)
        assert content_of(found) == text
        assert found is not None
        assert found.metadata == {"note": text[:200]}

    @pytest.mark.parametrize("key", ODD_KEYS, ids=range(len(ODD_KEYS)))
    def test_any_key_can_be_stored(self, backend: MemoryBackend, key: str) -> None:
        made = backend.create(Draft(key, "odd key", owner=self.who("alice")))
        found = backend.get(made.id)
        assert found is not None
        assert (found.key, found.content) == (key, "odd key")
        assert backend.delete(made.id)

    def test_two_owners_may_use_one_key(self, backend: MemoryBackend) -> None:
        one = backend.create(Draft("tea", "green", owner=self.who("alice")))
        two = backend.create(Draft("tea", "black", owner=self.who("bob")))
        assert one.id != two.id
        assert content_of(backend.get(one.id)) == "green"
        assert content_of(backend.get(two.id)) == "black"

    def test_only_what_changes_is_changed(self, backend: MemoryBackend) -> None:
        made = backend.create(self.tea())
        assert backend.update(made.id, Changes(content="Alice drinks coffee")) is True
        found = backend.get(made.id)
        assert found is not None
        assert (found.content, found.key) == ("Alice drinks coffee", TEA.key)
        assert (found.metadata, found.expires_at) == (TEA.metadata, TEA.expires_at)
        assert (found.owner, found.session) == (self.who(TEA.owner), TEA.session)

    def test_every_field_can_be_changed(self, backend: MemoryBackend) -> None:
        made = backend.create(self.tea())
        changes = Changes(
            key="other", type="episodic", session="s2", metadata={"a": 1}, expires_at=None
        )
        assert backend.update(made.id, changes) is True
        found = backend.get(made.id)
        assert found is not None
        assert (found.key, found.type, found.session) == ("other", "episodic", "s2")
        assert (found.metadata, found.expires_at) == ({"a": 1}, None)
        assert found.content == TEA.content

    def test_what_was_deleted_is_gone(self, backend: MemoryBackend) -> None:
        made, other = (
            backend.create(self.tea()),
            backend.create(Draft("b", "stays", owner=self.who("alice"))),
        )
        assert backend.delete(made.id) is True
        assert backend.get(made.id) is None
        assert backend.delete(made.id) is False
        assert backend.update(made.id, Changes(content="x")) is False
        assert content_of(backend.get(other.id)) == "stays"

    @pytest.mark.parametrize("record_id", ODD_IDS, ids=range(len(ODD_IDS)))
    def test_an_id_it_cannot_have_is_unknown_or_refused(
        self, backend: MemoryBackend, record_id: str
    ) -> None:
        made = backend.create(self.tea())
        assert not _tried(lambda: backend.get(record_id))
        assert not _tried(lambda: backend.update(record_id, Changes(content="broken")))
        assert not _tried(lambda: backend.delete(record_id))
        assert content_of(backend.get(made.id)) == TEA.content

    def test_pages_hold_everything_once(self, backend: MemoryBackend) -> None:
        made = {
            backend.create(Draft(f"k{n}", f"text {n}", owner=self.who("alice"))).id
            for n in range(7)
        }
        pages = [
            backend.list_records(Filter(owner=self.who("alice"), limit=3, offset=start))
            for start in (0, 3, 6, 9)
        ]
        assert [len(page.data) for page in pages] == [3, 3, 1, 0]
        assert {record.id for page in pages for record in page.data} == made
        assert {page.total for page in pages} == {7}

    def test_a_list_is_narrowed(self, backend: MemoryBackend) -> None:
        backend.create(Draft("a", "green tea", owner=self.who("alice"), session="s1"))
        backend.create(
            Draft("b", "black coffee", "episodic", owner=self.who("alice"), session="s2")
        )
        backend.create(Draft("c", "green tea", owner=self.who("bob"), session="s1"))
        page = backend.list_records(Filter(owner=self.who("alice")))
        assert sorted(record.key for record in page.data) == ["a", "b"]
        assert dict(page.by_type) == {"factual": 1, "episodic": 1}
        for wanted in (
            Filter(owner=self.who("alice"), type="episodic"),
            Filter(owner=self.who("alice"), session="s2"),
            Filter(owner=self.who("alice"), query="COFFEE"),
        ):
            assert [record.key for record in backend.list_records(wanted).data] == ["b"]

    def test_a_search_finds_what_holds_the_words(self, backend: MemoryBackend) -> None:
        backend.create(self.tea())
        backend.create(Draft("b", "Bread wants flour", owner=self.who("alice")))
        found = backend.search(Search("green tea", owner=self.who("alice")))
        assert [record.content for record in found] == [TEA.content]
        assert found[0].owner == self.who("alice")

    def test_a_search_stays_with_its_owner_and_session(self, backend: MemoryBackend) -> None:
        backend.create(Draft("a", "green tea", owner=self.who("alice"), session="s1"))
        backend.create(Draft("b", "green tea", owner=self.who("alice"), session="s2"))
        backend.create(Draft("c", "green tea", owner=self.who("bob"), session="s1"))
        found = backend.search(Search("green tea", owner=self.who("alice"), session="s1"))
        assert [record.key for record in found] == ["a"]

    def test_a_search_brings_no_more_than_asked_for(self, backend: MemoryBackend) -> None:
        for number in range(4):
            backend.create(Draft(f"k{number}", "green tea", owner=self.who("alice")))
        assert len(backend.search(Search("green tea", owner=self.who("alice"), limit=3))) == 3

    def test_a_search_without_a_hit_is_empty(self, backend: MemoryBackend) -> None:
        backend.create(self.tea())
        assert backend.search(Search("zeppelin", owner=self.who("alice"))) == []

    def test_threads_do_not_get_in_each_others_way(self, backend: MemoryBackend) -> None:
        drafts = [
            Draft("same", f"text {number}", owner=self.who(f"o{number}")) for number in range(6)
        ]
        with ThreadPoolExecutor(3) as pool:
            made = list(pool.map(self.in_thread(backend.create), drafts))
        assert len({record.id for record in made}) == 6
        assert {content_of(backend.get(record.id)) for record in made} == {
            draft.content for draft in drafts
        }

    def test_health_tells_that_it_works_and_how_fast(self, backend: MemoryBackend) -> None:
        backend.create(self.tea())
        health = backend.health()
        assert (health.available, health.reason) == (True, "")
        latency = health.detail["latency_ms"]
        assert isinstance(latency, float)
        assert latency >= 0


def _tried(call: object) -> object:
    """What a call answers; nothing when it is refused."""
    assert callable(call)
    try:
        return call()
    except BackendFailed as error:
        assert error.code in ("outside_vault", "not_found")
        return None
