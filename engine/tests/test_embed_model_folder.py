"""A model folder is made once, whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from engine.embed import model_folder
from engine.errors import EmbeddingFailed

KILLED_BUILD = """
import os, signal, sys
from pathlib import Path
from engine.embed import model_folder

def build(folder):
    (folder / "model.onnx").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)

model_folder.ensure(Path(sys.argv[1]), build)
"""


def write(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"weights")
    (folder / "tokenizer.json").write_text("{}")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_is_built_once(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        write(folder)

    target = tmp_path / "model" / "r1"
    assert model_folder.ensure(target, build) == target
    assert model_folder.ensure(target, build) == target
    assert len(built) == 1
    assert names(target) == ["manifest.json", "model.onnx", "tokenizer.json"]
    assert names(target.parent) == ["r1"]


def test_two_builders_at_once_agree_on_one_folder(tmp_path: Path) -> None:
    both = Barrier(2)

    def build(folder: Path) -> None:
        write(folder)
        both.wait(timeout=30)

    target = tmp_path / "r1"
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: model_folder.ensure(target, build), range(2)))
    assert results == [target, target]
    assert model_folder.is_complete(target)
    assert names(tmp_path) == ["r1"]


def test_a_builder_killed_in_the_middle_leaves_no_model(tmp_path: Path) -> None:
    target = tmp_path / "model" / "r1"
    root = Path(model_folder.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", KILLED_BUILD, str(target)], cwd=root, check=False)
    assert done.returncode < 0
    assert not target.exists()
    assert len(names(target.parent)) == 1
    assert model_folder.ensure(target, write) == target
    assert model_folder.is_complete(target)


def test_what_a_killed_builder_left_is_removed_later(tmp_path: Path) -> None:
    old, fresh = tmp_path / ".unfinished-old", tmp_path / ".unfinished-fresh"
    old.mkdir()
    fresh.mkdir()
    os.utime(old, (0, 0))
    model_folder.ensure(tmp_path / "r1", write)
    assert names(tmp_path) == [".unfinished-fresh", "r1"]


@pytest.mark.parametrize("damage", ["truncated", "missing", "manifest"])
def test_a_damaged_folder_is_built_again(tmp_path: Path, damage: str) -> None:
    target = model_folder.ensure(tmp_path / "r1", write)
    if damage == "truncated":
        (target / "model.onnx").write_bytes(b"w")
    elif damage == "missing":
        (target / "tokenizer.json").unlink()
    else:
        (target / "manifest.json").write_text("[1")
    assert not model_folder.is_complete(target)
    model_folder.ensure(target, write)
    assert (target / "model.onnx").read_bytes() == b"weights"


def test_a_full_disk_is_said_without_a_path(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    with pytest.raises(EmbeddingFailed) as caught:
        model_folder.ensure(tmp_path / "r1", build)
    assert caught.value.code == "model_load_failed"
    assert str(caught.value) == "The model cannot be written: No space left on device."
    assert names(tmp_path) == []


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        write(folder)
        raise EmbeddingFailed("wrong file", code="model_load_failed")

    with pytest.raises(EmbeddingFailed, match="wrong file"):
        model_folder.ensure(tmp_path / "r1", build)
    assert names(tmp_path) == []
