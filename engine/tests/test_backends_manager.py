"""Who is asked, in which order: the table of the first seed, with ids of each backend's own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from engine.backends.manager import BackendManager
from engine.errors import BackendFailed
from engine.records import Changes, Draft, Filter, Page, Record, Search
from engine.types import Health

TEA = Record("", "tea", "likes tea")


class Scripted:
    """A backend that has what it is given, or fails; it keeps what was asked of it."""

    def __init__(self, name: str, records: Mapping[str, str] | None = None) -> None:
        self.id = self.display_name = name
        self.records = {key: Record(key, "k", text) for key, text in (records or {}).items()}
        self.asked: list[str] = []
        self.fails = False

    def _asked(self, what: str) -> None:
        self.asked.append(what)
        if self.fails:
            raise BackendFailed(f"{self.id} is down", code="timeout")

    def initialize(self) -> None:
        self._asked("initialize")

    def shutdown(self) -> None:
        self.asked.append("shutdown")

    def create(self, draft: Draft) -> Record:
        self._asked("create")
        return Record(f"{self.id}-new", draft.key, draft.content)

    def get(self, record_id: str) -> Record | None:
        self._asked(f"get {record_id}")
        return self.records.get(record_id)

    def update(self, record_id: str, changes: Changes) -> bool:
        self._asked(f"update {record_id}")
        return record_id in self.records

    def delete(self, record_id: str) -> bool:
        self._asked(f"delete {record_id}")
        return self.records.pop(record_id, None) is not None

    def list_records(self, wanted: Filter) -> Page:
        self._asked("list")
        return Page(list(self.records.values()), len(self.records))

    def search(self, wanted: Search) -> list[Record]:
        self._asked(f"search {wanted.query}")
        return list(self.records.values())

    def health(self) -> Health:
        return Health(not self.fails, "down" if self.fails else "")


class Ids:
    """Memory ``m`` has the id ``<backend>-m`` in every backend that knows it."""

    def __init__(self, *unknown: str) -> None:
        self.unknown = unknown
        self.followed: list[tuple[str, str, bool]] = []

    def own_id(self, backend: str, memory_id: str) -> str | None:
        return None if backend in self.unknown else f"{backend}-{memory_id}"

    def follow(self, backend: str, memory_id: str, *, deleted: bool) -> None:
        self.followed.append((backend, memory_id, deleted))


class World:
    """A primary ``p`` and the fallbacks ``a`` and ``b``."""

    def __init__(self, *unknown: str) -> None:
        self.p, self.a, self.b = (Scripted(name, {f"{name}-m": name}) for name in "pab")
        self.ids = Ids(*unknown)
        self.manager = BackendManager(self.ids)
        for backend in (self.p, self.a, self.b):
            self.manager.register(backend)
        self.manager.configure("p", ["a", "b"])

    @property
    def asked(self) -> list[str]:
        """Everything asked of the three."""
        return [*self.p.asked, *self.a.asked, *self.b.asked]


@pytest.fixture
def world() -> World:
    """All three know the memory ``m``."""
    return World()


def test_create_goes_to_the_primary_only(world: World) -> None:
    assert world.manager.create(Draft("k", "c")).id == "p-new"
    assert (world.a.asked, world.b.asked, world.ids.followed) == ([], [], [])
    world.p.fails = True
    with pytest.raises(BackendFailed):
        world.manager.create(Draft("k", "c"))
    assert (world.a.asked, world.b.asked) == ([], [])


def test_list_goes_to_the_primary_only(world: World) -> None:
    world.p.fails = True
    with pytest.raises(BackendFailed):
        world.manager.list_records(Filter())
    assert world.asked == ["list"]


def test_get_asks_the_primary_first(world: World) -> None:
    assert world.manager.get("m") == ("p", Record("p-m", "k", "p"))
    assert world.asked == ["get p-m"]


def test_backend_manager_01_get_asks_the_fallbacks_in_order_when_the_primary_has_nothing(
    world: World,
) -> None:
    world.p.records.clear()
    world.a.records.clear()
    assert world.manager.get("m") == ("b", Record("b-m", "k", "b"))
    assert world.asked == ["get p-m", "get a-m", "get b-m"]


def test_backend_manager_02_get_asks_the_fallbacks_when_the_primary_fails(world: World) -> None:
    world.p.fails = True
    assert world.manager.get("m") == ("a", Record("a-m", "k", "a"))


def test_get_raises_the_primarys_failure_when_nobody_else_has_it(world: World) -> None:
    world.p.fails = world.b.fails = True
    world.a.records.clear()
    with pytest.raises(BackendFailed, match="p is down"):
        world.manager.get("m")


def test_get_is_none_when_nobody_has_it(world: World) -> None:
    for backend in (world.p, world.a, world.b):
        backend.records.clear()
    assert world.manager.get("m") is None


def test_a_backend_that_never_had_a_memory_is_not_asked_for_it() -> None:
    world = World("p", "a")
    assert world.manager.get("m") == ("b", Record("b-m", "k", "b"))
    assert world.asked == ["get b-m"]


def test_an_update_goes_to_the_primary_and_fallbacks_follow(world: World) -> None:
    assert world.manager.update("m", Changes(content="x")) is True
    assert world.asked == ["update p-m"]
    assert world.ids.followed == [("a", "m", False), ("b", "m", False)]


def test_only_fallbacks_that_have_a_memory_follow() -> None:
    world = World("a")
    world.manager.update("m", Changes(content="x"))
    world.manager.delete("m")
    assert world.ids.followed == [("b", "m", False), ("b", "m", True)]


def test_nobody_follows_an_update_that_the_primary_refused(world: World) -> None:
    world.p.fails = True
    with pytest.raises(BackendFailed):
        world.manager.update("m", Changes(content="x"))
    world.p.fails = False
    world.p.records.clear()
    assert world.manager.update("m", Changes(content="x")) is False
    assert world.ids.followed == []


def test_a_delete_goes_to_the_primary_and_fallbacks_follow(world: World) -> None:
    assert world.manager.delete("m") is True
    assert world.manager.delete("m") is False
    assert world.asked == ["delete p-m", "delete p-m"]
    assert world.ids.followed == [("a", "m", True), ("b", "m", True)] * 2


def test_backend_manager_03_search_takes_the_first_fallback_that_answers(world: World) -> None:
    world.p.fails = world.a.fails = True
    answered = world.manager.search(Search("tea"))
    assert ([r.id for r in answered.records], answered.backend) == (["b-m"], "b")
    assert [(name, error.code) for name, error in answered.failed] == [
        ("p", "timeout"),
        ("a", "timeout"),
    ]


def test_search_is_empty_when_all_fail(world: World) -> None:
    world.p.fails = world.a.fails = world.b.fails = True
    answered = world.manager.search(Search("tea"))
    assert (list(answered.records), answered.backend, len(answered.failed)) == ([], None, 3)


def test_backend_manager_05_nothing_found_is_an_answer(world: World) -> None:
    world.p.records.clear()
    answered = world.manager.search(Search("tea"))
    assert (list(answered.records), answered.backend) == ([], "p")
    assert world.asked == ["search tea"]


@pytest.mark.parametrize("fallbacks", [[], ["a"]])
def test_backend_manager_06_a_primary_that_is_not_registered_raises(
    world: World, fallbacks: list[str]
) -> None:
    with pytest.raises(BackendFailed) as failed:
        world.manager.configure("x", fallbacks)
    assert failed.value.code == "not_registered"
    assert world.manager.primary is world.p


def test_a_fallback_that_is_not_registered_raises(world: World) -> None:
    with pytest.raises(BackendFailed):
        world.manager.configure("p", ["x"])


def test_the_primary_is_no_fallback_and_none_comes_twice(world: World) -> None:
    world.manager.configure("a", ["b", "a", "b", "p"])
    assert world.manager.primary is world.a
    assert [backend.id for backend in world.manager.fallbacks] == ["b", "p"]


def test_an_unconfigured_manager_says_so() -> None:
    with pytest.raises(BackendFailed) as failed:
        BackendManager(Ids()).create(Draft("k", "c"))
    assert failed.value.code == "not_registered"


def test_every_backend_gets_ready_whatever_the_others_do(world: World) -> None:
    world.a.fails = True
    assert world.manager.initialize() == {"a": "a is down"}
    assert world.b.asked == ["initialize"]
    world.manager.shutdown()
    assert world.asked.count("shutdown") == 3


def test_the_health_of_all_is_told(world: World) -> None:
    world.b.fails = True
    assert {name: health.available for name, health in world.manager.health().items()} == {
        "p": True,
        "a": True,
        "b": False,
    }
