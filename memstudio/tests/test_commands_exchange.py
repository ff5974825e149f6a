"""``memory import`` and ``memory export``: here, and through a studio that runs."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from engine.testing import exchange_files as files
from memory.models import ApiKey, Memory
from memory.services import signin
from memstudio.cli.api import DENIED, REFUSED, USAGE
from memstudio.tests.mcp_client import manage, serving
from memstudio.tests.test_commands import answer, failed, run


@pytest.fixture(autouse=True)
def first_start(db: None) -> Iterator[None]:
    signin.first_start()
    # A request would close the connection that holds the transaction of the test.
    for signal_ in (request_started, request_finished):
        signal_.disconnect(close_old_connections)
    yield
    for signal_ in (request_started, request_finished):
        signal_.connect(close_old_connections)


def test_a_dry_run_shows_what_would_come_in_and_stores_nothing(tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(files.chatgpt()))
    said = run("memory", "import", str(file), "--dry-run")
    assert "would store: [Default] I like green tea" in said
    assert "chatgpt: 2 would be imported, 0 would be updated" in said
    assert "1 left out" in said
    report = answer("memory", "import", str(file), "--dry-run", "--assistant", "--owner", "Default")
    assert (report["imported"], report["dryRun"], len(report["sample"])) == (3, True, 3)
    assert not Memory.objects.exists()
    assert failed("memory", "import", str(file), "--dry-run", "--owner", "new")[0] == REFUSED
    assert not ApiKey.objects.filter(name="new").exists()


def test_a_folder_of_notes_is_imported_without_what_links_lead_to(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "notes", tmp_path / "elsewhere"
    (folder / "inner").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "secret.md").write_text("outside")
    (folder / "a.md").write_text("first")
    (folder / "inner" / "b.md").write_text("second")
    (folder / "c.png").write_bytes(b"\x89PNG")
    (folder / "link.md").symlink_to(elsewhere / "secret.md")
    (folder / "linked").symlink_to(elsewhere)
    report = answer("memory", "import", str(folder))
    assert (report["format"], report["imported"]) == ("markdown", 2)
    assert set(Memory.objects.values_list("key", flat=True)) == {"a", "inner/b"}


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.json", b'{"format"'),
        ("a.jsonl", b'{"id"'),
        ("a.csv", b"\xef\xbb\xbfid,"),
        ("a.zip", b"PK"),
    ],
)
def test_a_file_is_written_as_it_is_called(tmp_path: Path, name: str, start: bytes) -> None:
    answer("memory", "add", "a note", "--key", "note")
    path = tmp_path / name
    assert answer("memory", "export", str(path)) == {"written": str(path)}
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]
    assert answer("memory", "import", str(path))["same"] == 1


def test_an_export_takes_filters_and_a_format(tmp_path: Path) -> None:
    answer("memory", "add", "likes tea", "--key", "a", "--type", "semantic")
    answer("memory", "add", "likes ink", "--key", "b")
    path = tmp_path / "file"
    answer("memory", "export", str(path), "--format", "jsonl", "--type", "semantic")
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a"]
    answer("memory", "export", str(path), "--format", "markdown", "--q", "ink")
    assert zipfile.ZipFile(path).namelist() == ["Default/b.md"]
    status, said = failed("memory", "export", str(path), "--state", "odd")
    assert status == USAGE
    assert "state" in said
    assert failed("memory", "export", str(tmp_path / "none" / "a.json"))[0] == REFUSED


def test_a_file_of_which_nothing_comes_in_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("nonsense\nmore of it\n")
    status, said = failed("memory", "import", str(file))
    assert status == REFUSED
    assert said.startswith("Nothing could be imported. line 1: This line is not JSON.")
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("memory", "import", str(file), "--json", stdout=out)
    assert json.loads(out.getvalue())["error"]["report"]["skipped"] == 2
    (tmp_path / "b.zip").write_bytes(b"PK\x03\x04")
    assert failed("memory", "import", str(tmp_path / "b.zip"))[1] == "The archive is damaged."


def test_an_ordinary_key_imports_and_exports_only_its_own(tmp_path: Path) -> None:
    secret = answer("keys", "create", "app")["secret"]
    answer("memory", "add", "of the default key")
    file = tmp_path / "a.jsonl"
    file.write_text('{"content": "a", "apiKeyName": "Default"}\n')
    assert answer("memory", "import", str(file), "--as", secret)["owners"] == {"app": 1}
    answer("memory", "export", str(file), "--as", secret)
    assert [json.loads(line)["apiKeyName"] for line in file.read_text().splitlines()] == ["app"]
    reader = answer("keys", "create", "reader", "--scope", "read")["secret"]
    assert failed("memory", "import", str(file), "--as", reader)[0] in (DENIED, REFUSED)


def test_a_running_studio_imports_and_exports(tmp_path: Path) -> None:
    file, back = tmp_path / "graph.jsonl", tmp_path / "back.zip"
    file.write_text(files.graph())
    with serving(tmp_path / "home") as studio:

        def told(*arguments: str) -> dict[str, object]:
            found: dict[str, object] = json.loads(
                manage(studio.home, "memory", *arguments, "--json")
            )
            return found

        dry = told("import", str(file), "--dry-run")
        assert (dry["imported"], dry["dryRun"], dry["format"]) == (4, True, "mcp")
        report = told("import", str(file), "--owner", "ann")
        assert (report["imported"], report["owners"]) == (4, {"ann": 4})
        assert "vectors" not in report
        assert told("import", str(file), "--owner", "ann")["same"] == 4
        assert told("export", str(back), "--owner", "ann") == {"written": str(back)}
        assert (
            told("import", str(back), "--url", studio.url, "--as", _secret(studio.home))["imported"]
            == 4
        )
    assert len(zipfile.ZipFile(back).namelist()) == 4


def _secret(home: Path) -> str:
    made: str = json.loads(manage(home, "keys", "create", "bob", "--json"))["secret"]
    return made
