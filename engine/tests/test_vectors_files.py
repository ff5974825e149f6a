"""The files of the in-process index: a restart maps them, where they belong to the database."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.testing.contracts_vectors import (
    ALICE,
    BOB,
    DIM,
    EVERYONE,
    OF_BOB,
    X,
    Y,
    Z,
    fill,
    ids,
    passage,
    vector,
)
from engine.testing.vector_world import EAGER, SIGNATURE, SettledIndex, SqliteWorld
from engine.types import Signature
from engine.vectors.files import remove_orphans
from engine.vectors.in_process import InProcessIndex
from engine.vectors.state import Options

SPOIL = "UPDATE memory_vector SET vector = zeroblob(16)"
"""Whoever reads the database after this finds nothing near; no log tells of it."""


class FileWorld(SqliteWorld):
    """A world with a folder for files."""

    def __init__(self, path: Path) -> None:
        self.files = path / "files"
        options = Options(folder=self.files, tuning=EAGER)
        super().__init__(path / "index.db", SettledIndex, options)

    def states(self) -> list[Path]:
        """Folders of complete states."""
        return [found.parent for found in self.files.glob("*/manifest.json")]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[FileWorld]:
    made = FileWorld(tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(world: FileWorld) -> InProcessIndex:
    """Four passages of Alice and one of Bob, arranged and written to files."""
    made = world.open()
    world.put(*(passage(key, ALICE) for key in range(1, 5)), passage(9, BOB))
    fill(made, {1: X, 2: Y, 3: Z, 4: (0.6, 0.8, 0, 0), 9: X})
    assert search(made) == [1, 9, 4, 2, 3]
    return made


def search(store: InProcessIndex) -> list[int]:
    return ids(store.search(vector(X), scope=EVERYONE, limit=100))


def is_from_files(world: FileWorld) -> bool:
    """Whether a new process finds the vectors that the database has lost."""
    world.connect().execute("SAVEPOINT spoiled")
    world.connect().execute(SPOIL)
    try:
        found = world.open().search(vector(X), scope=OF_BOB, limit=1)
    finally:
        world.connect().execute("ROLLBACK TO spoiled")
        world.connect().execute("RELEASE spoiled")
    return [candidate.score for candidate in found] == [1.0]


def test_a_restart_maps_the_files_and_reads_no_vector(
    world: FileWorld, store: InProcessIndex
) -> None:
    assert is_from_files(world)
    again = world.open()
    assert search(again) == search(store)
    assert again.health().detail["graphs"] == 1
    assert len(world.states()) == 1


def test_what_changed_after_the_files_were_written_is_seen(
    world: FileWorld, store: InProcessIndex
) -> None:
    shutil.copytree(world.files, world.files.with_name("kept"))
    world.put(passage(5, ALICE))
    fill(store, {5: X, 1: Z})
    store.delete([3])
    world.remove(2)
    late = InProcessIndex(
        world.connect, signature=SIGNATURE, index_id=1, options=Options(folder=world.files)
    )
    assert search(late) == [5, 9, 4, 1]
    assert late.health().detail["tail"] == 2
    # The process was killed before newer files were named: the older ones serve.
    assert search(world.open()) == [5, 9, 4, 1]


def test_older_states_are_removed(world: FileWorld, store: InProcessIndex) -> None:
    (first,) = world.states()
    fill(store, {1: Y})
    assert search(store) == [9, 4, 1, 2, 3]
    search(store)
    (second,) = world.states()
    assert second != first
    assert {found.name for found in world.files.iterdir()} == {"1.lock", second.name}


def spoil_byte(place: Path) -> None:
    """Turn one byte of a graph."""
    (graph,) = place.glob("*.usearch")
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 0xFF
    graph.write_bytes(content)


def cut_matrix(place: Path) -> None:
    """Lose the end of the vectors."""
    matrix = place / "matrix.npy"
    matrix.write_bytes(matrix.read_bytes()[:-8])


def lose_column(place: Path) -> None:
    """Lose a whole file."""
    (place / "owner.npy").unlink()


def empty_manifest(place: Path) -> None:
    """Be cut off while the manifest was written."""
    (place / "manifest.json").write_text("", encoding="utf-8")


def other_format(place: Path) -> None:
    """Be written by another version."""
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    (place / "manifest.json").write_text(json.dumps(manifest | {"format": 0}), encoding="utf-8")


def other_share(place: Path) -> None:
    """Have graphs of vectors that were centred in another way."""
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    (place / "manifest.json").write_text(json.dumps(manifest | {"share": 0.1}), encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        *(spoil_byte, cut_matrix, lose_column, empty_manifest, other_format, other_share),
        shutil.rmtree,
    ],
)
def test_damaged_files_are_not_used_and_made_again(
    world: FileWorld, store: InProcessIndex, damage: Callable[[Path], None]
) -> None:
    (place,) = world.states()
    damage(place)
    assert not is_from_files(world)
    assert search(world.open()) == search(store)
    assert is_from_files(world)


def test_files_of_another_history_of_the_database_are_not_used(
    world: FileWorld, store: InProcessIndex, tmp_path: Path
) -> None:
    backup = sqlite3.connect(tmp_path / "backup.db")
    world.connect().backup(backup)
    fill(store, {1: Z, 9: Z})
    assert search(store) == [4, 1, 2, 3, 9]
    backup.backup(world.connect())
    backup.close()
    # As many changes as were lost: the numbers of the log alone would not tell.
    fill(store, {2: Y, 3: Z})
    assert search(world.open()) == [1, 9, 4, 2, 3]


def test_files_are_not_used_when_the_log_was_pruned_past_them(
    world: FileWorld, store: InProcessIndex
) -> None:
    world.remove(1)
    world.remove(2)
    world.prune(keep=1)
    assert not is_from_files(world)
    assert search(world.open()) == [9, 4, 3]


def test_files_of_another_signature_are_not_used(world: FileWorld, store: InProcessIndex) -> None:
    other = world.open(Signature("local", "fake", "2", DIM))
    world.connect().execute(SPOIL)
    assert [c.score for c in other.search(vector(X), scope=OF_BOB, limit=1)] == [0.0]


def test_a_dropped_index_takes_its_files_along(world: FileWorld, store: InProcessIndex) -> None:
    store.drop()
    assert world.states() == []
    assert search(world.open()) == []
    fill(store, {1: X})
    assert search(world.open()) == [1]


def test_files_of_indexes_that_are_no_more_can_be_removed(
    world: FileWorld, store: InProcessIndex
) -> None:
    (kept,) = world.states()
    for orphan in ("2-abc", "7-abc.draft"):
        (world.files / orphan).mkdir()
    remove_orphans(world.files, {1})
    assert {found.name for found in world.files.iterdir()} == {"1.lock", kept.name}
    remove_orphans(world.files, set())
    assert world.states() == []
    assert search(store) == search(world.open())


def test_a_search_does_not_wait_for_a_writer_to_name_its_files(
    world: FileWorld, store: InProcessIndex, tmp_path: Path
) -> None:
    writer = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    fill(store, {1: Y})
    writer.execute("BEGIN IMMEDIATE")
    assert search(store) == [9, 4, 1, 2, 3]
    named = world.connect().execute("SELECT token FROM memory_vector_files").fetchone()[0]
    assert len(world.states()) == 2
    writer.execute("ROLLBACK")
    writer.close()
    search(store)
    assert world.connect().execute("SELECT token FROM memory_vector_files").fetchone()[0] != named
    assert len(world.states()) == 1


def test_another_process_takes_over_what_one_has_arranged(world: FileWorld) -> None:
    lazy = InProcessIndex(world.connect, signature=SIGNATURE, index_id=1, options=world.options)
    builder = world.open()
    world.put(passage(1, BOB), passage(2, BOB), passage(3, BOB))
    fill(builder, {1: X, 2: Y, 3: Z})
    assert search(builder) == [1, 2, 3]
    search(builder)
    assert search(lazy) == [1, 2, 3]
    assert lazy.health().detail["graphs"] == 1
    assert len(world.states()) == 1


def test_what_cannot_be_written_is_told_and_searches_go_on(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("not a folder", encoding="utf-8")
    options = Options(folder=tmp_path / "files", tuning=EAGER)
    world = SqliteWorld(tmp_path / "index.db", SettledIndex, options)
    store = world.open()
    world.put(passage(1), passage(2))
    fill(store, {1: X, 2: Y})
    assert search(store) == [1, 2]
    health = store.health()
    world.close()
    assert health.available
    assert health.detail["failure"] == "The index could not be arranged (FileExistsError)."


WRITER = """
import sys
from pathlib import Path
from engine.testing.contracts_vectors import fill, passage
from engine.testing.vector_world import SqliteWorld

world = SqliteWorld(Path(sys.argv[1]))
store = world.open()
for line in sys.stdin:
    key, x, y = line.split()
    if x == y == "0":
        store.delete([int(key)])
    else:
        world.put(passage(int(key)))
        fill(store, {int(key): (float(x), float(y), 0, 0)})
    print("done", flush=True)
"""


def test_writes_of_another_process_are_seen_by_the_next_search(
    world: FileWorld, store: InProcessIndex, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "index.db")],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        for order, wanted in (
            ("20 1 0", [1, 9, 20, 4, 2, 3]),
            ("1 0 1", [9, 20, 4, 1, 2, 3]),
            ("9 0 0", [20, 4, 1, 2, 3]),
            ("21 1 0", [20, 21, 4, 1, 2, 3]),
        ):
            print(order, file=other.stdin, flush=True)
            assert other.stdout.readline() == "done\n"
            assert search(store) == wanted
        other.stdin.close()


def test_rows_come_and_go_while_graphs_grow(world: FileWorld) -> None:
    store = world.open()
    rng = np.random.default_rng(5)
    held: dict[int, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    for turn in range(12):
        fresh = [int(key) for key in rng.integers(1, 300, 25)]
        world.put(*(passage(key, BOB) for key in fresh))
        held |= {key: rng.standard_normal(DIM) for key in fresh}
        fill(store, {key: tuple(held[key]) for key in fresh})
        gone = [key for key in held if rng.random() < 0.1]
        store.delete(gone)
        held = {key: values for key, values in held.items() if key not in gone}
        query = rng.standard_normal(DIM)
        wanted = sorted(held, key=lambda key: -float(held[key] @ query / np.linalg.norm(held[key])))
        used = world.open() if turn % 3 == 0 else store
        assert ids(used.search(vector(list(query)), scope=OF_BOB, limit=8)) == wanted[:8]
