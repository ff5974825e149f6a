"""Builds the embedding source of a catalogue entry, whatever its kind."""

from __future__ import annotations

from pathlib import Path

from engine.embed import e5_repack, e5_tokenizer, installed, packaged
from engine.embed.catalogue import ModelEntry
from engine.embed.child_build import Progress
from engine.embed.onnx import OnnxSource, Parts, Use
from engine.embed.static import StaticSource
from engine.embed.use import UseSource
from engine.encoder import EncoderFiles, HubTokenizer
from engine.errors import EmbeddingFailed
from engine.protocols import EmbeddingSource


def source(
    entry: ModelEntry,
    models_dir: Path,
    use: Use,
    *,
    folder: Path | None = None,
    progress: Progress = e5_repack.silent,
) -> EmbeddingSource:
    """The source of a model. Cheap: weights load on first use.

    ``folder`` is where a hub model's files are, when not in their own place under ``models_dir``.
    Raises ``EmbeddingFailed`` for a cross-encoder and for a length the model does not have.
    """
    place = folder or installed.folder_of(models_dir, entry)
    if entry.kind == "use":
        return UseSource(template=use.template)
    if entry.kind == "static":
        return StaticSource(entry, lambda: installed.require(place, entry), template=use.template)
    if entry.kind == "cross-encoder":
        raise EmbeddingFailed("This model compares; it does not embed.", code="model_load_failed")
    if entry.kind == "repack":
        return OnnxSource(entry, lambda: _repacked(models_dir, entry, progress), use)
    if entry.is_packaged:
        return OnnxSource(entry, lambda: _packaged(entry), use)
    return OnnxSource(entry, lambda: _opened(installed.encoder_files(place, entry)), use)


def is_available(entry: ModelEntry, models_dir: Path) -> bool:
    """Whether a model can be chosen now: its packages are here, or it is installed."""
    if not entry.is_packaged:
        return installed.is_installed(models_dir, entry)
    try:
        packaged.locate(entry)
    except EmbeddingFailed:
        return False
    return True


def _repacked(models_dir: Path, entry: ModelEntry, progress: Progress) -> Parts:
    folder = e5_repack.ensure(models_dir, entry, progress=progress)
    return Parts(folder / e5_repack.MODEL, lambda most: e5_tokenizer.load(entry, most))


def _packaged(entry: ModelEntry) -> Parts:
    paths = packaged.verified(entry)
    model, tokenizer = (Path(entry.file(role).path).name for role in ("model", "tokenizer"))
    return _opened(EncoderFiles(paths[model], paths[tokenizer]))


def _opened(files: EncoderFiles) -> Parts:
    return Parts(files.model, lambda most: HubTokenizer.open(files.tokenizer, most))
