"""Makes the folder of a model once, whoever asks for it and whatever happens meanwhile.

The files are written into a folder beside the final one, flushed, listed with their sizes in
``manifest.json``, and appear under the final name by one rename. A process killed in the middle
leaves only a folder of rubbish, removed later; of two processes the second finds the work done.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from engine.errors import EmbeddingFailed

MANIFEST = "manifest.json"
UNFINISHED = ".unfinished-"
ABANDONED_AFTER_S = 3600.0

Build = Callable[[Path], None]
"""Writes the model's files into the folder it is given."""


def is_complete(folder: Path) -> bool:
    """Whether every file of the manifest is there in its full size."""
    try:
        sizes = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def ensure(folder: Path, build: Build) -> Path:
    """Return ``folder``, building it when it is absent or damaged.

    Raises ``EmbeddingFailed`` (``model_load_failed``) when it cannot be written.
    """
    if is_complete(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent)
        scratch = folder.parent / f"{UNFINISHED}{uuid.uuid4().hex}"
        scratch.mkdir()
        try:
            build(scratch)
            _seal(scratch)
            _publish(scratch, folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise EmbeddingFailed(
            f"The model cannot be written: {reason}.", code="model_load_failed"
        ) from error
    return folder


def _seal(scratch: Path) -> None:
    """Flush every file and write the manifest last."""
    sizes: dict[str, int] = {}
    for path in sorted(scratch.iterdir()):
        sizes[path.name] = path.stat().st_size
        _flush(path)
    manifest = scratch / MANIFEST
    manifest.write_text(json.dumps(sizes, indent=1), encoding="utf-8")
    _flush(manifest)


def _flush(path: Path) -> None:
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _publish(scratch: Path, folder: Path) -> None:
    """Give the finished folder its name, unless another process was faster."""
    if folder.exists() and not is_complete(folder):
        # Moved aside rather than deleted: the rename is atomic, removing a tree is not.
        folder.rename(folder.parent / f"{UNFINISHED}{uuid.uuid4().hex}")
    try:
        scratch.rename(folder)
    except OSError:
        if not is_complete(folder):
            raise


def _sweep(parent: Path) -> None:
    """Remove what killed processes left behind."""
    limit = time.time() - ABANDONED_AFTER_S
    for path in parent.glob(f"{UNFINISHED}*"):
        try:
            abandoned = path.stat().st_mtime < limit
        except FileNotFoundError:
            continue
        if abandoned:
            shutil.rmtree(path, ignore_errors=True)
