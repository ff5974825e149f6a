"""Static embeddings in the layout of model2vec."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engine.embed import catalogue, safetensors, static, wordpiece
from engine.embed.static import StaticSource, Table
from engine.errors import EmbeddingFailed
from engine.protocols import EmbeddingSource
from engine.testing import tiny_models
from engine.testing.contracts_embed import EmbeddingSourceContract
from engine.types import Purpose

PIECES = {"[UNK]": 0, "red": 1, "blue": 2, "##s": 3, "un": 4, "##real": 5, "##,": 6}
ROWS = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]], np.float32)

Tensors = Mapping[str, npt.NDArray[np.generic]]


def source_of(folder: Path, tensors: Tensors, dim: int = tiny_models.DIM) -> StaticSource:
    tiny_models.write_safetensors(folder / static.MODEL, tensors)
    entry = dataclasses.replace(catalogue.find("potion-base-8m"), dimensions=(dim,))
    return StaticSource(entry, lambda: folder, template="t1")


class TestStaticSource(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> EmbeddingSource:
        tiny_models.write_tokenizer(tmp_path / static.TOKENIZER)
        return source_of(tmp_path, {"embeddings": tiny_models.table()})


class TestSharedRowsAndBareVocabulary(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> EmbeddingSource:
        (tmp_path / static.VOCABULARY).write_text("\n".join(tiny_models.VOCABULARY), "utf-8")
        rows = tiny_models.table().astype(np.float16)
        count = len(rows)
        return source_of(
            tmp_path,
            {
                "embeddings": rows[::-1].copy(),
                "weights": np.linspace(0.5, 1.5, count).astype(np.float32),
                "mapping": np.arange(count)[::-1].astype(np.int64),
            },
        )


def test_the_signature_names_family_and_revision(tmp_path: Path) -> None:
    source = source_of(tmp_path, {"embeddings": tiny_models.table()})
    assert str(source.signature) == "static:potion-base-8m:bf8b056651a2+t1:32"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("red blue", [1, 2], id="wordpiece-01"),
        pytest.param("foo bar", [0, 0], id="wordpiece-02"),
        pytest.param("", [], id="nothing"),
        pytest.param("Red BLUE", [1, 2], id="wordpiece-05"),
        pytest.param("reds", [1, 3], id="wordpiece-06"),
        pytest.param("unreal", [4, 5], id="longest piece first"),
        pytest.param("red, blue", [1, 6, 2], id="wordpiece-08"),
        pytest.param("redx", [0], id="one unknown part"),
        pytest.param("s" * 10_000, [0], id="a very long word"),
    ],
)
def test_words_are_cut_greedily(text: str, wanted: list[int]) -> None:
    assert wordpiece.token_ids(text, PIECES) == wanted


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        pytest.param([], [0, 0, 0, 0], id="mean_pool-03"),
        pytest.param([999], [0, 0, 0, 0], id="mean_pool-04"),
        pytest.param([1, 1, 2], [2 / 3, 1 / 3, 0, 0], id="mean_pool-05"),
        pytest.param([-1, 1], [1, 0, 0, 0], id="a negative id"),
    ],
)
def test_vectors_of_tokens_are_averaged(ids: list[int], wanted: list[float]) -> None:
    assert np.allclose(Table(ROWS).pool(ids), wanted, atol=1e-6)


def test_weights_and_shared_rows_count() -> None:
    table = Table(ROWS, np.array([1, 2, 4], np.float32), np.array([1, 1, 2], np.int64))
    assert np.allclose(table.pool([0, 1, 2]), [1, 4 / 3, 0, 0])


def test_a_text_without_known_words_is_near_nothing(tmp_path: Path) -> None:
    (tmp_path / static.VOCABULARY).write_text("[UNK]\nred\nblue\n")
    rows = np.concatenate([ROWS, [[0, 0, 0, 4]]]).astype(np.float32)
    source = source_of(tmp_path, {"embeddings": rows}, dim=4)
    (row,) = source.embed(["???"], purpose=Purpose.QUERY)
    assert np.allclose(row, np.array([1, 1, 0, 4]) / np.sqrt(18))


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({"other": ROWS}, "no table"),
        ({"embeddings": ROWS[0]}, "no table"),
        ({"embeddings": ROWS, "weights": np.ones(2, np.float32)}, "do not fit"),
        ({"embeddings": ROWS, "mapping": np.array([0, 3], np.int64)}, "do not fit"),
        ({"embeddings": ROWS, "mapping": np.array([-1, 0], np.int64)}, "do not fit"),
        ({"embeddings": ROWS[:, :3].copy()}, "not as long"),
    ],
)
def test_wrong_weights_are_refused(tmp_path: Path, tensors: Tensors, said: str) -> None:
    (tmp_path / static.VOCABULARY).write_text("[UNK]\nred\nblue\n")
    with pytest.raises(EmbeddingFailed, match=said) as caught:
        source_of(tmp_path, tensors, dim=4).load()
    assert caught.value.code == "model_load_failed"


@pytest.mark.parametrize(
    "content",
    [b"", b"abc", b"\xff" * 16, b"\x02" + b"\0" * 7 + b"[]", b"\x04" + b"\0" * 7 + b"null"],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(EmbeddingFailed, match="cannot be read"):
        safetensors.read(tmp_path / "x")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    tiny_models.write_safetensors(tmp_path / "x", {"embeddings": ROWS})
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:-4])
    with pytest.raises(EmbeddingFailed, match="cannot be read"):
        safetensors.read(tmp_path / "x")


def test_a_missing_tokenizer_is_said(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingFailed, match="tokenizer cannot be read"):
        source_of(tmp_path, {"embeddings": tiny_models.table()}).load()
