"""Model files that come inside Python packages: where they are, and whether they are intact."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from engine.embed.catalogue import ModelEntry, ModelFile
from engine.errors import EmbeddingFailed

BLOCK = 1 << 20


def locate(entry: ModelEntry) -> dict[str, Path]:
    """Paths of a model's files by name, without importing the packages or reading the files.

    Raises ``EmbeddingFailed`` (``model_load_failed``) that names the missing package.
    """
    return {Path(file.path).name: _path(file) for file in entry.files}


def verified(entry: ModelEntry) -> dict[str, Path]:
    """Like ``locate``, after checking the SHA-256 of every file."""
    paths = locate(entry)
    for file in entry.files:
        if sha256(paths[Path(file.path).name]) != file.sha256:
            raise EmbeddingFailed(
                f"The file {file.path} of the package {file.package} is not that of version "
                f"{file.version}.",
                code="model_load_failed",
            )
    return paths


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _path(file: ModelFile) -> Path:
    spec = importlib.util.find_spec(file.module)
    if spec is None or spec.origin is None:
        raise EmbeddingFailed(
            f"The package {file.package} is not installed; it may have no build for this system.",
            code="model_load_failed",
        )
    path = Path(spec.origin).parent / file.path
    if not path.is_file():
        raise EmbeddingFailed(
            f"The package {file.package} has no file {file.path}.", code="model_load_failed"
        )
    return path
