"""Builds local embedding sources; ``settings.MEMORY_LOCAL_SOURCES`` names the packaged ones."""

from __future__ import annotations

from pathlib import Path

from engine.embed import catalogue, installed, local
from engine.embed.catalogue import ModelEntry
from engine.embed.onnx import Use
from engine.errors import EmbeddingFailed
from engine.protocols import EmbeddingSource
from engine.rerank.cross_encoder import CrossEncoder, CrossEncoderUse

CROSS_ENCODER = "cross-encoder"


def offered(models_dir: Path) -> list[ModelEntry]:
    """Every model that can be chosen now, packaged or installed: encoders and cross-encoders."""
    entries = catalogue.entries(models_dir)
    return [entry for entry in entries if local.is_available(entry, models_dir)]


def cross_encoder(model: str, *, models_dir: Path) -> CrossEncoder:
    """A reranker of the catalogue; its files are looked for on the first use.

    Raises ``EmbeddingFailed`` when the catalogue has no such reranker.
    """
    entry = catalogue.find(model, models_dir)
    if entry.kind != CROSS_ENCODER:
        raise EmbeddingFailed("This model is no reranker.", code="model_load_failed")
    folder = installed.folder_of(models_dir, entry)
    use = CrossEncoderUse(max_tokens=entry.max_tokens or 512, batch_texts=entry.batch_texts)
    return CrossEncoder(entry.id, lambda: installed.encoder_files(folder, entry), use)


def from_catalogue(
    model: str, *, models_dir: Path, template: str, dim: int | None = None
) -> EmbeddingSource:
    """Any model of the catalogue, packaged or installed. Raises ``EmbeddingFailed``."""
    entry = catalogue.find(model, models_dir)
    return local.source(entry, models_dir, Use(template=template, dim=dim))


def multilingual_e5_small(*, models_dir: Path, template: str) -> EmbeddingSource:
    """The default model: any language, about 10 ms a text."""
    return from_catalogue("multilingual-e5-small", models_dir=models_dir, template=template)


def use_multilingual(*, models_dir: Path, template: str) -> EmbeddingSource:
    """The light model: any language, about 2 ms a text, weaker on passages; needs no folder."""
    return from_catalogue("use-multilingual", models_dir=models_dir, template=template)


def all_minilm_l6_v2_int8(*, models_dir: Path, template: str) -> EmbeddingSource:
    """The small English model: about 7 ms a text; Chinese and Japanese are lost on it."""
    return from_catalogue("all-minilm-l6-v2-int8", models_dir=models_dir, template=template)
