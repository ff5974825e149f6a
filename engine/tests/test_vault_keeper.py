from __future__ import annotations

import resource
import threading

import pytest

from engine.vault.errors import VaultError
from engine.vault.index import Document, VaultIndex, VectorCache
from engine.vault.keeper import Build, Keeper, Version
from engine.vault.keys import VaultKey
from engine.vault.sealing import Place

FIRST = Version(1, 1, 1)
PLACE = Place("a", "row", 1, "body")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keeper(clock: Clock) -> Keeper:
    return Keeper(clock=clock)


def opened(keeper: Keeper, vault: str = "a", *, auto_lock_s: float = 0) -> None:
    keeper.unlock(vault, VaultKey.new(), generation=1, auto_lock_s=auto_lock_s)


def made(text: str = "text") -> Build:
    return lambda vectors: VaultIndex([Document("d", 1, "card", "t", text)], vectors)


def locked(keeper: Keeper, vault: str = "a", generation: int = 1) -> bool:
    return not keeper.is_unlocked(vault, generation)


def test_a_vault_is_locked_until_its_key_comes(keeper: Keeper) -> None:
    with pytest.raises(VaultError) as refused:
        keeper.sealer("a", 1)
    assert refused.value.code == "vault_locked"
    opened(keeper)
    sealed = keeper.sealer("a", 1).seal_text("text", PLACE)
    assert keeper.sealer("a", 1).open_text(sealed, PLACE) == "text"


def test_a_lock_takes_the_key_from_whoever_holds_it(keeper: Keeper) -> None:
    opened(keeper)
    sealer = keeper.sealer("a", 1)
    sealed = sealer.seal_text("text", PLACE)
    assert keeper.lock("a")
    with pytest.raises(VaultError):
        sealer.open_text(sealed, PLACE)
    assert locked(keeper) and not keeper.lock("a")


def test_a_lock_by_another_process_holds_here_at_the_next_step(keeper: Keeper) -> None:
    opened(keeper)
    keeper.index("a", FIRST, made())
    assert locked(keeper, generation=2)
    assert locked(keeper, generation=1)
    assert keeper.cached == 0


def test_a_lock_erases_the_indexes_and_vectors_of_every_vault(keeper: Keeper) -> None:
    opened(keeper)
    opened(keeper, "b")
    _, slot = keeper.index("b", FIRST, made())
    vectors = slot.vectors
    keeper.lock("a")
    assert (keeper.cached, slot.index, slot.vectors is vectors) == (0, None, False)
    assert not locked(keeper, "b")
    keeper.lock_all()
    assert locked(keeper, "b") and keeper.unlocked() == []


def test_an_index_is_built_once_and_again_after_any_change(keeper: Keeper) -> None:
    first, _ = keeper.index("a", FIRST, made())
    assert keeper.index("a", FIRST, made())[0] is first
    for version in (Version(2, 1, 1), Version(2, 2, 1), Version(2, 2, 2)):
        assert keeper.index("a", version, made())[0] is not first
    assert keeper.builds == 4


def test_who_comes_while_it_is_built_gets_the_same(keeper: Keeper) -> None:
    building, go = threading.Event(), threading.Event()
    found: list[VaultIndex] = []

    def slowly(vectors: VectorCache) -> VaultIndex:
        building.set()
        assert go.wait(10)
        return made()(vectors)

    def ask() -> None:
        found.append(keeper.index("a", FIRST, slowly)[0])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert building.wait(10)
    go.set()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1 and len(found) == 4
    assert keeper.builds == 1


def test_an_index_that_is_locked_while_it_is_built_is_not_kept(keeper: Keeper) -> None:
    opened(keeper)

    def locking(vectors: VectorCache) -> VaultIndex:
        keeper.lock("a")
        return made()(vectors)

    with pytest.raises(VaultError) as refused:
        keeper.index("a", FIRST, locking)
    assert (refused.value.code, keeper.cached) == ("cancelled", 0)


def test_a_build_that_fails_leaves_room_for_the_next(keeper: Keeper) -> None:
    def failing(vectors: VectorCache) -> VaultIndex:
        raise VaultError("too large", code="index_too_large")

    with pytest.raises(VaultError):
        keeper.index("a", FIRST, failing)
    keeper.index("b", FIRST, made())
    assert keeper.index("a", FIRST, made())[0].chunks


def test_a_third_vault_evicts_the_one_used_longest_ago(keeper: Keeper) -> None:
    for vault in ("a", "b", "a", "c"):
        keeper.index(vault, FIRST, made())
    assert keeper.cached == 2
    assert not keeper.figures("b", FIRST).is_indexed
    assert keeper.figures("a", FIRST).chunks == keeper.figures("c", FIRST).chunks == 1


def test_an_unused_vault_locks_itself(keeper: Keeper, clock: Clock) -> None:
    opened(keeper, auto_lock_s=60)
    opened(keeper, "b")
    clock.now = 50
    keeper.sealer("a", 1)
    clock.now = 100
    assert keeper.sweep() == []
    assert keeper.is_unlocked("a", 1)
    clock.now = 110
    assert keeper.sweep() == ["a"]
    assert locked(keeper) and not locked(keeper, "b")


def test_guesses_are_slowed_down_and_the_right_one_forgives(keeper: Keeper, clock: Clock) -> None:
    for _ in range(5):
        keeper.check_pace("a")
        keeper.missed("a")
    with pytest.raises(VaultError) as refused:
        keeper.check_pace("a")
    assert refused.value.code == "rate_limited"
    keeper.check_pace("b")
    clock.now = 31
    keeper.check_pace("a")
    opened(keeper)
    keeper.missed("a")
    keeper.check_pace("a")


def test_a_process_with_keys_leaves_no_core_file(keeper: Keeper) -> None:
    before = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        opened(keeper)
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)


def test_figures_are_of_the_version_asked_for(keeper: Keeper) -> None:
    opened(keeper)
    keeper.index("a", FIRST, made())
    figures = keeper.figures("a", FIRST)
    assert (figures.is_unlocked, figures.is_indexed, figures.chunks) == (True, True, 1)
    assert not keeper.figures("a", Version(2, 1, 1)).is_indexed
    keeper.drop("a")
    assert not keeper.figures("a", FIRST).is_indexed
