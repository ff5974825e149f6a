"""What was erased is in no file, and a disk without room ends no process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.testing.contracts_vectors import (
    ALICE,
    DIM,
    EVERYONE,
    X,
    Y,
    Z,
    fill,
    ids,
    passage,
    vector,
)
from engine.testing.vector_world import EAGER, SIGNATURE, SettledIndex, SqliteWorld
from engine.vectors.arrange import room
from engine.vectors.files import IndexFiles
from engine.vectors.in_process import InProcessIndex
from engine.vectors.state import Options


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SqliteWorld]:
    options = Options(folder=tmp_path / "files", tuning=EAGER)
    made = SqliteWorld(tmp_path / "index.db", SettledIndex, options)
    yield made
    made.close()


@pytest.fixture
def store(world: SqliteWorld) -> InProcessIndex:
    """Four passages of Alice, arranged, with a graph, in files."""
    made = world.open()
    world.put(*(passage(key, ALICE) for key in range(1, 5)))
    fill(made, {1: X, 2: Y, 3: Z, 4: (0.6, 0.8, 0, 0)})
    assert search(made) == [1, 4, 2, 3]
    return made


def search(store: InProcessIndex) -> list[int]:
    return ids(store.search(vector(X), scope=EVERYONE, limit=100))


def graph_sizes(folder: Path) -> list[int]:
    files = IndexFiles(folder, index_id=1, signature=str(SIGNATURE))
    states = [found.name.partition("-")[2] for found in folder.glob("1-*")]
    read = [files.read(token) for token in states]
    return [len(graph) for found in read if found for graph in found[0].graphs.values()]


def test_forgotten_files_are_gone_at_once_and_searches_go_on(
    world: SqliteWorld, store: InProcessIndex, tmp_path: Path
) -> None:
    store.delete([4])
    store.forget_files()
    assert [found.name for found in (tmp_path / "files").iterdir()] == ["1.lock"]
    assert search(store) == [1, 2, 3]
    assert search(world.open()) == [1, 2, 3]


def test_files_made_again_hold_nothing_of_what_was_forgotten(
    world: SqliteWorld, store: InProcessIndex, tmp_path: Path
) -> None:
    world.put(passage(5, ALICE))
    fill(store, {5: Y})
    search(store)
    search(store)
    assert graph_sizes(tmp_path / "files") == [5]
    store.delete([4])
    store.forget_files()
    search(store)
    search(store)
    assert graph_sizes(tmp_path / "files") == [4]


def test_the_disk_gives_the_vectors_their_room_before_they_are_written(tmp_path: Path) -> None:
    matrix = room(10_000, 128, tmp_path)
    assert matrix.shape == (10_000, 128)
    held = (tmp_path / "matrix.npy").stat()
    assert held.st_blocks * 512 >= held.st_size > matrix.nbytes


def test_a_draft_that_was_not_completed_leaves_nothing(tmp_path: Path) -> None:
    files = IndexFiles(tmp_path, index_id=1, signature="s")
    with pytest.raises(OSError, match="no room"), files.draft("abc") as draft:
        np.save(draft / "matrix.npy", np.zeros((2, DIM), np.float32))
        raise OSError("no room")
    assert list(tmp_path.iterdir()) == []
