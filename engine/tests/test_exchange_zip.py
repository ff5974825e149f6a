"""Archives that are written as a stream are what every reader takes for archives."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.exchange import zip_writer

MOMENT = datetime(2025, 5, 4, 12, 30, 58, tzinfo=UTC)


def archive(members: dict[str, bytes], moment: datetime = MOMENT) -> bytes:
    made = ((name, moment, content) for name, content in members.items())
    return b"".join(zip_writer.write(made))


def test_members_come_back_with_their_names_and_times() -> None:
    members = {"Ann/茶.md": "お茶".encode(), "b.md": b"", "c/d.md": b"x" * 300_000}
    with zipfile.ZipFile(io.BytesIO(archive(members))) as found:
        assert found.testzip() is None
        assert {name: found.read(name) for name in found.namelist()} == members
        info = found.getinfo("b.md")
    assert info.date_time == (2025, 5, 4, 12, 30, 58)
    assert info.external_attr >> 16 == 0o100644


def test_no_member_is_an_archive_too() -> None:
    assert zipfile.ZipFile(io.BytesIO(archive({}))).namelist() == []


@pytest.mark.parametrize("year", [1, 1979, 2108, 9999])
def test_a_time_that_archives_cannot_say_is_the_nearest_year(year: int) -> None:
    data = archive({"a": b"x"}, MOMENT.replace(year=year))
    info = zipfile.ZipFile(io.BytesIO(data)).getinfo("a")
    assert info.date_time[0] in (1980, 2107)


def test_more_members_than_the_old_format_counts_are_all_there(tmp_path: Path) -> None:
    count = 70_000
    path = tmp_path / "many.zip"
    with path.open("wb") as file:
        file.writelines(zip_writer.write((f"{n}.md", MOMENT, b"%d" % n) for n in range(count)))
    with zipfile.ZipFile(path) as found:
        assert len(found.namelist()) == count
        assert found.read(f"{count - 1}.md") == b"%d" % (count - 1)
    if shutil.which("unzip"):
        done = subprocess.run(["unzip", "-tq", str(path)], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout[-300:]


def test_members_beyond_four_gibibytes_have_their_place() -> None:
    shared = (zip_writer.UTF8, zip_writer.DEFLATED, 0, 33, 0, 2, 0, 1)
    at = zip_writer.FAR + 5
    start = io.BytesIO(zip_writer._entry(shared, b"a", at) + zip_writer._end(1, 59, at))
    data = start.getvalue()
    assert data[42:46] == b"\xff" * 4
    assert int.from_bytes(data[51:59], "little") == at
    assert b"PK\x06\x06" in data
    assert b"PK\x06\x07" in data
