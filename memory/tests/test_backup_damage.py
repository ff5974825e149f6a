"""An archive that is damaged, of another version, or no backup at all changes nothing."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory.backup import manifest as manifests
from memory.backup.errors import BackupError
from memory.backup.restore import restore
from memory.backup.write import Contents, write
from memory.models import ApiKey, AuditEntry, Memory, Passage
from memory.principal import Principal
from memory.tests.asking import ask
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.django_db(transaction=True)
Change = Callable[[dict[str, bytes]], None]
MEMORIES = "tables/memory.Memory.jsonl"


@pytest.fixture
def archive(alice: Principal, remember: Remember, work: Work, tmp_path: Path) -> Path:
    """A backup of three memories with their vectors."""
    for word in ("tea", "cocoa", "juice"):
        remember(alice, f"likes {word}", key=word)
    work()
    write(tmp_path / "b.zip", Contents(with_vectors=True))
    return tmp_path / "b.zip"


def _changed(path: Path, change: Change) -> Path:
    """The archive with other members."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    target = path.with_name("changed.zip")
    with zipfile.ZipFile(target, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return target


def _with_manifest(change: Callable[[dict[str, Any]], None]) -> Change:
    def apply(members: dict[str, bytes]) -> None:
        document = json.loads(members[manifests.NAME])
        change(document)
        members[manifests.NAME] = json.dumps(document).encode()

    return apply


def _rewritten(members: dict[str, bytes], name: str, content: bytes) -> None:
    """Another content, with a manifest that knows of it."""
    import hashlib

    document = json.loads(members[manifests.NAME])
    for member in document["members"]:
        if member["name"] == name:
            member["sha256"] = hashlib.sha256(content).hexdigest()
            member["rows"] = content.count(b"\n")
    members[name] = content
    members[manifests.NAME] = json.dumps(document).encode()


def _refused(path: Path, match: str) -> None:
    """Restoring fails with one sentence, and everything is as it was."""
    before = (Memory.objects.count(), Passage.objects.count(), ApiKey.objects.count())
    with pytest.raises(BackupError, match=match) as caught:
        restore(path, replace=True)
    assert "\n" not in str(caught.value)
    assert (Memory.objects.count(), Passage.objects.count(), ApiKey.objects.count()) == before
    assert not AuditEntry.objects.filter(action="database.restore").exists()


def test_a_truncated_archive_is_noticed(archive: Path) -> None:
    whole = archive.read_bytes()
    for share in (0.2, 0.6, 0.99):
        archive.write_bytes(whole[: int(len(whole) * share)])
        _refused(archive, "is not a backup, or its end is missing")


def test_a_changed_byte_is_noticed_in_every_member(archive: Path) -> None:
    whole = archive.read_bytes()
    with zipfile.ZipFile(archive) as file:
        # Behind the header of a member, its name and the sizes beside it.
        places = [
            info.header_offset + 60 + len(info.filename) + info.compress_size // 2
            for info in file.infolist()
            if info.compress_size > 100
        ]
    assert len(places) > 5
    for place in places:
        broken = bytes([whole[place] ^ 0xFF])
        archive.write_bytes(whole[:place] + broken + whole[place + 1 :])
        _refused(archive, "damaged|not a backup")


def test_a_member_that_was_tampered_with_is_noticed(archive: Path) -> None:
    def tamper(members: dict[str, bytes]) -> None:
        members[MEMORIES] = members[MEMORIES].replace(b"likes tea", b"likes gin")

    _refused(_changed(archive, tamper), f"damaged: {MEMORIES} is not as it was written")


def test_a_member_more_or_less_is_noticed(archive: Path) -> None:
    _refused(_changed(archive, lambda members: members.update(more=b"")), "does not hold what")
    _refused(_changed(archive, lambda members: members.__delitem__(MEMORIES)), "does not hold what")


def test_a_file_that_is_no_backup_is_said(tmp_path: Path, first_start: None) -> None:
    (tmp_path / "a").write_text("no zip")
    _refused(tmp_path / "a", "is not a backup")
    with zipfile.ZipFile(tmp_path / "b", "w") as file:
        file.writestr("letter.txt", "hello")
    _refused(tmp_path / "b", "not a backup of Memory Studio")
    with zipfile.ZipFile(tmp_path / "c", "w") as file:
        file.writestr(manifests.NAME, "[]")
    _refused(tmp_path / "c", "not a backup of Memory Studio")
    _refused(tmp_path / "absent", "Cannot read .*no such file")


def test_a_row_that_cannot_be_stored_loads_nothing(archive: Path) -> None:
    def double(members: dict[str, bytes]) -> None:
        _rewritten(members, MEMORIES, members[MEMORIES] * 2)

    _refused(_changed(archive, double), "a row of memory.Memory cannot be stored")


def test_a_row_that_refers_to_nothing_loads_nothing(archive: Path) -> None:
    def orphan(members: dict[str, bytes]) -> None:
        _rewritten(members, "tables/memory.ApiKey.jsonl", b"")

    _refused(_changed(archive, orphan), "cannot be loaded")


def test_a_row_of_another_length_loads_nothing(archive: Path) -> None:
    def shorten(members: dict[str, bytes]) -> None:
        _rewritten(members, MEMORIES, b'["a", "b"]\n')

    _refused(_changed(archive, shorten), "not have as many values")


def test_a_backup_of_a_newer_version_is_refused(archive: Path) -> None:
    newer = _with_manifest(lambda m: m["migrations"]["memory"].append("0999_later"))
    _refused(_changed(archive, newer), r"newer version \(memory.0999_later\); update")
    format_ = _with_manifest(lambda m: m.update(formatVersion=2))
    _refused(_changed(archive, format_), "newer version of Memory Studio")


def test_tables_and_columns_that_are_unknown_are_refused(archive: Path) -> None:
    def rename(document: dict[str, Any]) -> None:
        document["members"][0]["table"] = "memory.Surprise"

    _refused(_changed(archive, _with_manifest(rename)), "lacks: memory.Surprise")

    def add(document: dict[str, Any]) -> None:
        document["members"][0]["columns"].append("surprise")

    _refused(_changed(archive, _with_manifest(add)), "lacks: auth.User.surprise")


def _without_column(name: str) -> Change:
    """As an older version, whose memories had no such column, would have written it."""

    def apply(members: dict[str, bytes]) -> None:
        document = json.loads(members[manifests.NAME])
        document["migrations"]["memory"] = ["0001_initial"]
        member = next(m for m in document["members"] if m["name"] == MEMORIES)
        place = member["columns"].index(name)
        member["columns"].pop(place)
        members[manifests.NAME] = json.dumps(document).encode()
        rows = [json.loads(line) for line in members[MEMORIES].splitlines()]
        lines = [json.dumps(row[:place] + row[place + 1 :]) + "\n" for row in rows]
        _rewritten(members, MEMORIES, "".join(lines).encode())

    return apply


def test_a_backup_of_an_older_version_is_loaded_with_defaults(
    archive: Path, alice: Principal
) -> None:
    done = restore(_changed(archive, _without_column("is_pinned")), replace=True)
    assert done.is_older
    assert done.counts["memory.Memory"] == 3
    assert ask(alice, "cocoa") == ["likes cocoa"]


def test_a_column_without_a_default_cannot_be_made_up(archive: Path) -> None:
    older = _changed(archive, _without_column("content"))
    _refused(older, "lacks memory.Memory.content, which has no default: restore it with that")
