"""Files of parts: a start takes them when they are whole and of this index, else builds anew."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import scope_sql
from engine.keyword.part import Limits
from engine.keyword.postings import PostingsIndex
from engine.testing.contracts_keyword import passage
from engine.testing.keyword_world import SCOPE, KeywordWorld, dice, random_passages, same

SIZE = Limits().least_file + 100
FILE = "owner-11.postings"
NEWEST = f"SELECT MAX(id) FROM {scope_sql.CHANGES}"
PRUNE = f"DELETE FROM {scope_sql.CHANGES} WHERE id < ?"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KeywordWorld, bytes]]:
    """A database, and the file of its one part."""
    folder = tmp_path_factory.mktemp("kept")
    world = KeywordWorld(folder / "index.db")
    index = world.open(folder=folder / "parts")
    index.upsert(random_passages(dice(1), range(1, SIZE)))
    assert found(index)
    yield world, (folder / "parts" / FILE).read_bytes()
    world.close()


def found(index: PostingsIndex) -> list[int]:
    return [hit.passage_id for hit in index.search("咖啡 deploy", scope=SCOPE, limit=20)]


def place(folder: Path, data: bytes) -> Path:
    path = folder / FILE
    path.write_bytes(data)
    return path


def test_a_start_takes_the_file_and_what_changed_since(
    kept: tuple[KeywordWorld, bytes], tmp_path: Path
) -> None:
    world, data = kept
    path = place(tmp_path, data)
    index = world.open(folder=tmp_path, limits=Limits(built_at_once=0))
    world.execute("BEGIN")
    world.execute("ROLLBACK")
    for query in ("咖啡 deploy", "タ", "the release of Node.js"):
        expected = world.fts5.search(query, scope=SCOPE, limit=50)
        assert same(index.search(query, scope=SCOPE, limit=50), expected)
    assert path.read_bytes() == data
    assert index.health().detail["building"] == 0
    assert index.health().detail["passages_in_memory"] == SIZE - 1
    index.upsert([passage(SIZE, "unforgettable")])
    again = world.open(folder=tmp_path, limits=Limits(built_at_once=0))
    hits = again.search("unforgettable", scope=SCOPE, limit=5)
    assert [hit.passage_id for hit in hits] == [SIZE]
    again.delete([SIZE])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data[:10],
        lambda data: b"",
        lambda data: b"x" + data[1:],
        lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
        lambda data: data[:-1] + bytes([data[-1] ^ 128]),
        lambda data: bytes(len(data)),
    ],
)
def test_a_damaged_file_is_built_anew(
    kept: tuple[KeywordWorld, bytes], tmp_path: Path, damage: object
) -> None:
    world, data = kept
    assert callable(damage)
    path = place(tmp_path, damage(data))
    index = world.open(folder=tmp_path)
    assert found(index) == found(world.open())
    assert index.settle()
    assert len(path.read_bytes()) >= len(data) - 1000


def test_a_file_that_the_log_does_not_lead_on_from_is_built_anew(
    kept: tuple[KeywordWorld, bytes], tmp_path: Path
) -> None:
    world, data = kept
    path = place(tmp_path, data)
    (newest,) = world.connect().execute(NEWEST).fetchone()
    world.log(1, 2, 3)
    world.execute(PRUNE, newest + 2)
    found(world.open(folder=tmp_path))
    assert path.read_bytes() != data


def test_a_file_of_another_database_is_not_taken(
    kept: tuple[KeywordWorld, bytes], tmp_path: Path
) -> None:
    _, data = kept
    path = place(tmp_path, data)
    world = KeywordWorld(tmp_path / "index.db")
    index = world.open(folder=tmp_path)
    index.upsert([passage(number, "friday") for number in range(1, SIZE)])
    assert found(index) == []
    assert path.read_bytes() != data
    world.close()


def test_a_file_from_before_a_backup_was_restored_is_not_taken(tmp_path: Path) -> None:
    """The log of a restored database gives the same numbers again, for other texts."""
    world = KeywordWorld(tmp_path / "index.db")
    world.open().upsert([passage(number, "friday") for number in range(1, SIZE)])
    backup = KeywordWorld(tmp_path / "backup.db")
    world.connect().backup(backup.connect())
    world.open().upsert([passage(SIZE, "secret")])
    world.open(folder=tmp_path).search("secret", scope=SCOPE, limit=5)
    assert (tmp_path / FILE).exists()
    backup.open().upsert([passage(SIZE, "public")])
    restored = backup.open(folder=tmp_path)
    assert restored.search("secret", scope=SCOPE, limit=5) == []
    assert [hit.passage_id for hit in restored.search("public", scope=SCOPE, limit=5)] == [SIZE]
    for one in (world, backup):
        one.close()


def test_files_are_for_nobody_else_and_go_with_the_index(tmp_path: Path) -> None:
    world = KeywordWorld(tmp_path / "index.db")
    folder = tmp_path / "parts"
    index = world.open(folder=folder)
    index.upsert([passage(number, "friday") for number in range(1, SIZE)])
    found(index)
    path = folder / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    index.clear()
    assert list(folder.iterdir()) == []
    world.close()


def test_a_file_that_cannot_be_removed_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = KeywordWorld(tmp_path / "index.db")
    (tmp_path / "parts" / FILE).mkdir(parents=True)
    (tmp_path / "parts" / "shared.postings").write_bytes(b"terms")
    world.open(folder=tmp_path / "parts").forget_files()
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [FILE]
    assert FILE in caplog.text
    world.close()


def test_no_folder_means_no_files_and_a_full_disk_no_error(tmp_path: Path) -> None:
    world = KeywordWorld(tmp_path / "index.db")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be", encoding="utf-8")
    index = world.open(folder=blocked / "parts")
    index.upsert([passage(number, "deploy") for number in range(1, SIZE)])
    assert len(found(index)) == 20
    assert len(found(world.open())) == 20
    assert sorted(path.name for path in tmp_path.iterdir() if "index" not in path.name) == [
        "blocked"
    ]
    world.close()
