"""A folder of Markdown files as a backend; nothing can leave it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.backends import notes
from engine.backends.folder import FolderBackend
from engine.backends.vault import MAX_NOTE, Vault
from engine.errors import BackendFailed
from engine.protocols import MemoryBackend
from engine.records import Changes, Draft, Filter, Search
from engine.testing.contracts_backends import BackendContract


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A vault beside which a secret lies."""
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    root = tmp_path / "vault"
    root.mkdir()
    return root


@pytest.fixture
def folder(root: Path) -> FolderBackend:
    """The whole vault."""
    return FolderBackend("notes", "Notes", Vault(root))


class TestContract(BackendContract):
    @pytest.fixture
    def backend(self, root: Path) -> MemoryBackend:
        """The whole vault."""
        return FolderBackend("notes", "Notes", Vault(root))


class TestContractOfAFolder(BackendContract):
    @pytest.fixture
    def backend(self, root: Path) -> MemoryBackend:
        """A folder within the vault that is not there yet."""
        return FolderBackend("notes", "Notes", Vault(root, ("Memories", "LLM")))


def test_obsidian_backend_01_a_key_that_is_a_path_stays_in_the_vault(
    folder: FolderBackend, root: Path
) -> None:
    made = folder.create(Draft("../../etc/x", "text"))
    assert [path.name for path in root.iterdir()] == [made.id]
    assert made.key == "../../etc/x"


@pytest.mark.parametrize(
    "record_id", ["../secret.md", "a/../../secret.md", "/secret.md", "a\0.md", ".obsidian/x.md"]
)
def test_a_path_that_leaves_the_vault_is_refused(folder: FolderBackend, record_id: str) -> None:
    for call in (folder.get, folder.delete, lambda path: folder.update(path, Changes(content="x"))):
        with pytest.raises(BackendFailed) as failed:
            call(record_id)
        assert failed.value.code == "outside_vault"


def test_an_absolute_path_of_a_real_file_is_refused(folder: FolderBackend, root: Path) -> None:
    with pytest.raises(BackendFailed):
        folder.get(str(root.parent / "secret.md"))


def test_links_are_not_followed(folder: FolderBackend, root: Path) -> None:
    (root / "link.md").symlink_to(root.parent / "secret.md")
    (root / "up").symlink_to(root.parent, target_is_directory=True)
    assert folder.get("link.md") is None
    assert folder.update("link.md", Changes(content="broken")) is False
    assert folder.delete("link.md") is False
    for call in (folder.get, folder.delete):
        with pytest.raises(BackendFailed) as failed:
            call("up/secret.md")
        assert failed.value.code == "outside_vault"
    assert folder.list_records(Filter()).total == 0
    assert (root.parent / "secret.md").read_text(encoding="utf-8") == "secret"


def test_a_folder_that_is_a_link_is_refused(root: Path) -> None:
    (root / "Memories").symlink_to(root.parent, target_is_directory=True)
    made = FolderBackend("notes", "Notes", Vault(root, ("Memories",)))
    assert made.health().detail["code"] == "outside_vault"
    with pytest.raises(BackendFailed):
        made.create(Draft("a", "b"))
    assert sorted(path.name for path in root.parent.iterdir()) == ["secret.md", "vault"]


def test_only_readable_notes_count(folder: FolderBackend, root: Path) -> None:
    (root / "fine.md").write_text("tea", encoding="utf-8")
    (root / "bytes.md").write_bytes(b"\xff\xfe tea")
    (root / "huge.md").write_bytes(b"a" * (MAX_NOTE + 1))
    (root / "other.txt").write_text("tea", encoding="utf-8")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "x.md").write_text("tea", encoding="utf-8")
    os.mkfifo(root / "pipe.md")
    (root / "folder.md").mkdir()
    assert [record.id for record in folder.list_records(Filter()).data] == ["fine.md"]
    assert [record.id for record in folder.search(Search("tea"))] == ["fine.md"]
    assert folder.get("pipe.md") is None
    assert folder.delete("folder.md") is False


def test_notes_in_folders_are_found(folder: FolderBackend, root: Path) -> None:
    (root / "People").mkdir()
    (root / "People" / "Ada.md").write_text("Ada likes tea", encoding="utf-8")
    record = folder.list_records(Filter()).data[0]
    assert (record.id, record.key) == ("People/Ada.md", "People/Ada")


def test_a_missing_vault_is_told(tmp_path: Path) -> None:
    made = FolderBackend("notes", "Notes", Vault(tmp_path / "none"))
    assert made.health().reason == "The folder of the vault is not there."
    with pytest.raises(BackendFailed) as failed:
        made.list_records(Filter())
    assert failed.value.code == "not_found"


def test_nothing_but_notes_is_left_behind(folder: FolderBackend, root: Path) -> None:
    made = folder.create(Draft("a", "b"))
    folder.update(made.id, Changes(content="c"))
    folder.health()
    assert [path.name for path in root.iterdir()] == [made.id]


FRONT = [
    pytest.param("---\n---\ntext", {}, "text", id="empty"),
    pytest.param("---\r\na: 1\r\n---\r\ntext\r\n", {"a": 1}, "text\r\n", id="windows"),
    pytest.param("\ufeff---\na: b\n---\n", {"a": "b"}, "", id="byte order mark"),
    pytest.param("---\n- a\n---\ntext", {}, "---\n- a\n---\ntext", id="a list"),
    pytest.param("---\na: [\n---\ntext", {}, "---\na: [\n---\ntext", id="broken"),
    pytest.param("---\nnot closed", {}, "---\nnot closed", id="not closed"),
    pytest.param("text\n---\na: 1\n---\n", {}, "text\n---\na: 1\n---\n", id="not in front"),
    pytest.param("---\na: &x 1\nb: *x\n---\n", {}, "---\na: &x 1\nb: *x\n---\n", id="aliases"),
    pytest.param(
        "---\n!!python/object:os.x\n---\n", {}, "---\n!!python/object:os.x\n---\n", id="tag"
    ),
]


@pytest.mark.parametrize(("text", "fields", "content"), FRONT)
def test_front_matter_is_read_or_is_text(
    text: str, fields: dict[str, object], content: str
) -> None:
    note = notes.parse(text)
    assert (note.fields, note.content) == (fields, content)


def test_hand_written_values_are_read_as_what_they_mean() -> None:
    text = (
        "---\nmemory-key: 42\nmemory-metadata:\n  day: 2026-05-06\n  tags:\n    - tea\n"
        "memory-created: 2026-01-02T03:04:05Z\nmemory-expires: never\n---\nx"
    )
    record = notes.to_record("a/b.md", notes.parse(text), notes.Facts(5.0, 9.0))
    assert (record.key, record.metadata) == ("42", {"day": "2026-05-06", "tags": ["tea"]})
    assert record.created_at is not None
    assert record.created_at.isoformat() == "2026-01-02T03:04:05+00:00"
    assert record.expires_at is None


@pytest.mark.parametrize(
    "metadata",
    [{"k" * 2000: 1}, {"n": 1e22}, {"a": {"b": [1, None, True, "x: y"]}}, {"\U000e0001": "\x85"}],
    ids=["long name", "large number", "nested", "odd characters"],
)
def test_metadata_comes_back_from_a_note(
    folder: FolderBackend, metadata: dict[str, object]
) -> None:
    made = folder.create(Draft("a", "b", metadata=metadata))  # type: ignore[arg-type]
    assert made.metadata == metadata


def test_notes_that_name_nobody_are_the_configured_owners(root: Path) -> None:
    made = FolderBackend("notes", "Notes", Vault(root), owner="carol")
    (root / "a.md").write_text("tea", encoding="utf-8")
    made.create(Draft("b", "tea", owner="alice"))
    assert [r.id for r in made.list_records(Filter(owner="carol")).data] == ["a.md"]
    assert [r.key for r in made.search(Search("tea", owner="alice"))] == ["b"]
