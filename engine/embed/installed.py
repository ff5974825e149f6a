"""Models installed from the hub: where their files are, and whether all are there.

A folder under ``models`` holds the files under their paths in the repository. The installer
(``engine.models_install``) writes ``manifest.json`` last, so a folder with it is whole.
"""

from __future__ import annotations

import json
from pathlib import Path

from engine.embed.catalogue import ModelEntry, ModelFile
from engine.encoder import EncoderFiles
from engine.errors import EmbeddingFailed

MANIFEST = "manifest.json"


def folder_of(models_dir: Path, entry: ModelEntry) -> Path:
    """Where an entry's files live."""
    return models_dir / entry.id


def missing(folder: Path, entry: ModelEntry) -> list[str]:
    """Paths of the entry's files that a folder lacks or has in another size."""
    return [file.path for file in entry.files if not _is_there(folder, file)]


def is_installed(models_dir: Path, entry: ModelEntry) -> bool:
    """Whether a hub model was installed whole, at the revision of the catalogue."""
    folder = folder_of(models_dir, entry)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return bool(manifest["revision"] == entry.revision) and not missing(folder, entry)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def require(folder: Path, entry: ModelEntry) -> Path:
    """The folder, when it has every file. Raises ``EmbeddingFailed`` (``model_not_installed``)
    that names what is missing."""
    lost = missing(folder, entry)
    if len(lost) == len(entry.files):
        raise EmbeddingFailed(
            f"The model is not installed: run manage.py rag model-install {entry.id}.",
            code="model_not_installed",
        )
    if lost:
        raise EmbeddingFailed(
            f"The model is incomplete, these files are missing: {', '.join(lost)}.",
            code="model_not_installed",
        )
    return folder


def encoder_files(folder: Path, entry: ModelEntry) -> EncoderFiles:
    """The graph and the tokenizer of an installed encoder. Raises as ``require``."""
    require(folder, entry)
    return EncoderFiles(folder / entry.file("model").path, folder / entry.file("tokenizer").path)


def _is_there(folder: Path, file: ModelFile) -> bool:
    try:
        return (folder / file.path).stat().st_size == file.bytes
    except OSError:
        return False
