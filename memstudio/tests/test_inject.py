"""The skill file: where it goes, and that it stays until it is replaced on purpose."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from memory.mcp.tools import TOOLS
from memstudio.management.commands.inject import FOLDERS, PLACE, SKILL


def inject(home: Path, *arguments: str) -> str:
    out = io.StringIO()
    call_command("inject", *arguments, home=home, stdout=out)
    return out.getvalue()


def test_all_goes_to_the_clients_that_are_here(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".cursor").mkdir()
    said = inject(tmp_path, "all")
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("SKILL.md"))
    assert files == [f".claude/{PLACE}", f".cursor/{PLACE}"]
    assert "codex: not here" in said
    assert not list(tmp_path.rglob("*.new"))


def test_a_client_that_is_named_gets_its_file(tmp_path: Path) -> None:
    for name, folder in FOLDERS.items():
        assert f"{name}: installed" in inject(tmp_path, name)
        assert (tmp_path / folder / PLACE).read_text() == SKILL.read_text()


def test_a_file_that_is_there_stays_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / ".claude" / PLACE
    target.parent.mkdir(parents=True)
    target.write_text("older")
    assert "left as it is" in inject(tmp_path, "all")
    assert target.read_text() == "older"
    assert "replaced" in inject(tmp_path, "all", "--force")
    assert target.read_text() == SKILL.read_text()
    assert "already there" in inject(tmp_path, "all")


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".claude").write_text("a file where a folder would be")
    with pytest.raises(CommandError, match="cannot be written"):
        inject(tmp_path, "claude")


def test_the_skill_tells_of_the_tools_that_there_are() -> None:
    text = SKILL.read_text(encoding="utf-8")
    told = {tool.name for tool in TOOLS if f"`{tool.name}`" in text}
    assert told == {tool.name for tool in TOOLS} - {"memory_clear"}
    assert text.startswith("---\nname: memories\ndescription: ")
