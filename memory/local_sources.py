"""Builds the packaged embedding sources; ``settings.MEMORY_LOCAL_SOURCES`` names these."""

from __future__ import annotations

from pathlib import Path

from engine.embed.onnx import OnnxSource
from engine.embed.use import UseSource
from engine.protocols import EmbeddingSource


def multilingual_e5_small(*, models_dir: Path, template: str) -> EmbeddingSource:
    """The default model: any language, about 10 ms a text."""
    return OnnxSource(models_dir, template=template)


def use_multilingual(*, models_dir: Path, template: str) -> EmbeddingSource:
    """The light model: any language, about 2 ms a text, weaker on passages; needs no folder."""
    del models_dir
    return UseSource(template=template)
