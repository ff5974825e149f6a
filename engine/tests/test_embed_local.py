"""Installed models of every form, on small files built here."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from engine.embed import catalogue, installed, local
from engine.embed.catalogue import ModelEntry
from engine.embed.onnx import OnnxSource, Use
from engine.errors import EmbeddingFailed
from engine.protocols import EmbeddingSource
from engine.testing import tiny_models
from engine.testing.contracts_embed import SENTENCES, EmbeddingSourceContract
from engine.types import Purpose

USE = Use(template="t1")
GEMMA = "embeddinggemma"


def shrunk(folder: Path, entry: ModelEntry, dimensions: tuple[int, ...]) -> ModelEntry:
    """The entry with the sizes of the small files that a test wrote."""
    files = tuple(
        dataclasses.replace(file, bytes=(folder / file.path).stat().st_size)
        for file in entry.files
        if (folder / file.path).exists()
    )
    return dataclasses.replace(entry, files=files, dimensions=dimensions)


def minilm(models_dir: Path, **changes: object) -> ModelEntry:
    entry = dataclasses.replace(catalogue.find("all-minilm-l6-v2"), **changes)  # type: ignore[arg-type]
    folder = installed.folder_of(models_dir, entry)
    tiny_models.write_encoder(folder / "onnx/model.onnx")
    tiny_models.write_tokenizer(folder / "tokenizer.json")
    return shrunk(folder, entry, (tiny_models.DIM,))


def gemma(models_dir: Path) -> ModelEntry:
    entry = catalogue.find(GEMMA)
    folder = installed.folder_of(models_dir, entry)
    tiny_models.write_encoder(folder / "onnx/model_q4.onnx", dim=128, is_pooled=True)
    tiny_models.write_tokenizer(folder / "tokenizer.json")
    return shrunk(folder, entry, (128, 96, 16))


class TestGenericEncoder(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> EmbeddingSource:
        return local.source(minilm(tmp_path), tmp_path, USE)


class TestGemma(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> EmbeddingSource:
        return local.source(gemma(tmp_path), tmp_path, USE)


class TestShortGemma(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> EmbeddingSource:
        return local.source(gemma(tmp_path), tmp_path, Use(template="t1", dim=96))


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingSource:
    models_dir = tmp_path_factory.mktemp("models")
    return local.source(catalogue.find("all-minilm-l6-v2-int8"), models_dir, USE)


class TestPackagedMiniLm(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, packaged: EmbeddingSource) -> EmbeddingSource:
        return packaged


def test_packaged_minilm_gives_the_published_vector(packaged: EmbeddingSource) -> None:
    (row,) = packaged.embed(["This is an example sentence"], purpose=Purpose.DOCUMENT)
    published = [0.0677, 0.0635, 0.0487, 0.0793, 0.0374, 0.0027]  # the model card's first values
    assert np.abs(row[:6] - published).max() < 0.003


def test_a_shorter_vector_is_the_beginning_of_the_long_one(tmp_path: Path) -> None:
    entry = gemma(tmp_path)
    long = local.source(entry, tmp_path, USE).embed(SENTENCES, purpose=Purpose.DOCUMENT)
    short = local.source(entry, tmp_path, Use("t1", dim=16))
    rows = short.embed(SENTENCES, purpose=Purpose.DOCUMENT)
    cut = long[:, :16] / np.linalg.norm(long[:, :16], axis=1, keepdims=True)
    assert np.allclose(rows, cut, atol=1e-6)
    assert str(short.signature) == "local:embeddinggemma:5090578d9565+t1:16"


def test_a_length_the_model_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingFailed, match="no vectors of length 100"):
        local.source(catalogue.find(GEMMA), tmp_path, Use("t1", dim=100))


def test_pooling_takes_the_first_state_where_the_entry_says_so(tmp_path: Path) -> None:
    source = local.source(minilm(tmp_path, pooling="cls"), tmp_path, USE)
    rows = source.embed(SENTENCES, purpose=Purpose.DOCUMENT)
    assert np.allclose(rows, rows[0], atol=1e-6)  # every text begins with [CLS]


def test_a_text_is_cut_after_the_asked_number_of_tokens(tmp_path: Path) -> None:
    source = local.source(minilm(tmp_path), tmp_path, Use("t1", max_tokens=4))
    first, second = source.embed(
        ["staging server port", "staging server on"], purpose=Purpose.QUERY
    )
    assert np.allclose(first, second, atol=1e-6)


def test_token_vectors_leave_out_the_prompt(tmp_path: Path) -> None:
    source = local.source(gemma(tmp_path), tmp_path, USE)
    assert isinstance(source, OnnxSource)
    for purpose in Purpose:
        (rows,) = source.token_vectors(["staging server"], purpose=purpose)
        assert rows.shape == (2, 128)


def test_a_model_that_is_not_installed_is_said(tmp_path: Path) -> None:
    entry = catalogue.find(GEMMA)
    assert not local.is_available(entry, tmp_path)
    health = local.source(entry, tmp_path, USE).health()
    assert not health.available
    assert health.detail["code"] == "model_not_installed"
    assert health.reason == (
        "The model is not installed: run manage.py rag model-install embeddinggemma."
    )


def test_missing_files_are_named(tmp_path: Path) -> None:
    entry = gemma(tmp_path)
    folder = installed.folder_of(tmp_path, entry)
    (folder / "onnx/model_q4.onnx_data").unlink()
    with pytest.raises(EmbeddingFailed, match=r"missing: onnx/model_q4\.onnx_data\.") as caught:
        local.source(entry, tmp_path, USE).embed(["tea"], purpose=Purpose.QUERY)
    assert caught.value.code == "model_not_installed"


def test_a_folder_elsewhere_serves_too(tmp_path: Path) -> None:
    entry = gemma(tmp_path)
    place = tmp_path / "mine"
    installed.folder_of(tmp_path, entry).rename(place)
    source = local.source(entry, tmp_path, USE, folder=place)
    assert source.health().available


def test_only_packages_that_are_here_can_be_chosen(tmp_path: Path) -> None:
    found = {entry.id: local.is_available(entry, tmp_path) for entry in catalogue.entries()}
    assert found["multilingual-e5-small"]
    assert found["all-minilm-l6-v2-int8"]
    assert not found["potion-base-8m"]


def test_a_cross_encoder_does_not_embed(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingFailed, match="does not embed"):
        local.source(catalogue.find("ms-marco-minilm-l6-v2"), tmp_path, USE)
