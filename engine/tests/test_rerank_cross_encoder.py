"""A local cross-encoder, on small models of the real form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.embed import catalogue, installed
from engine.encoder import EncoderFiles
from engine.errors import RerankFailed, Unavailable
from engine.protocols import Reranker
from engine.rerank.cross_encoder import CrossEncoder, CrossEncoderUse
from engine.testing import tiny_models
from engine.testing.contracts_rerank import RerankerContract, ranked

USE = CrossEncoderUse()


def small(folder: Path, *, scale: float = 0.01, use: CrossEncoderUse = USE) -> CrossEncoder:
    files = EncoderFiles(folder / "onnx/model.onnx", folder / "tokenizer.json")
    tiny_models.write_cross_encoder(files.model, scale=scale)
    tiny_models.write_tokenizer(files.tokenizer)
    return CrossEncoder("small", lambda: files, use)


class TestCrossEncoder(RerankerContract):
    @pytest.fixture
    def reranker(self, tmp_path: Path) -> Reranker:
        return small(tmp_path)


class TestCrossEncoderInBatches(RerankerContract):
    @pytest.fixture
    def reranker(self, tmp_path: Path) -> Reranker:
        return small(tmp_path, use=CrossEncoderUse(batch_texts=16, max_tokens=64))


def test_scores_lie_between_0_and_1(tmp_path: Path) -> None:
    found = small(tmp_path, scale=100.0).rerank("staging", ranked(["staging", "tea", "port"]))
    assert all(0.0 <= candidate.score <= 1.0 for candidate in found)
    assert found[0].score == 1.0


def test_a_long_passage_is_cut_and_the_query_kept(tmp_path: Path) -> None:
    reranker = small(tmp_path, use=CrossEncoderUse(max_tokens=16))
    given = ranked(["nothing of the kind", "staging server " + "word " * 500])
    assert reranker.rerank("staging server", given)[0].passage_id == given[1][0].passage_id


def test_loading_waits_for_the_first_use(tmp_path: Path) -> None:
    reranker = small(tmp_path)
    before = reranker.is_loaded
    reranker.load()
    assert (before, reranker.is_loaded, reranker.model) == (False, True, "small")
    assert reranker.health().detail["loaded"]


def test_a_model_that_is_not_installed_is_said(tmp_path: Path) -> None:
    entry = catalogue.find("ms-marco-minilm-l6-v2")
    reranker = CrossEncoder(entry.id, lambda: installed.encoder_files(tmp_path, entry), USE)
    with pytest.raises(RerankFailed, match=r"rag model-install ms-marco-minilm-l6-v2\.") as caught:
        reranker.rerank("tea", ranked(["tea"]))
    assert caught.value.code == "model_not_installed"
    health = reranker.health()
    assert (health.available, health.detail["code"]) == (False, "model_not_installed")


def test_a_broken_model_is_said(tmp_path: Path) -> None:
    reranker = small(tmp_path)
    (tmp_path / "onnx/model.onnx").write_bytes(b"no model")
    with pytest.raises(RerankFailed) as caught:
        reranker.load()
    assert caught.value.code == "model_load_failed"
    assert str(tmp_path) not in str(caught.value)


def test_a_model_that_fails_while_it_runs_is_a_tier_that_is_off(tmp_path: Path) -> None:
    reranker = small(tmp_path)
    tokenizer = tmp_path / "tokenizer.json"
    described = json.loads(tokenizer.read_text())
    described["model"]["vocab"]["staging"] = 1_000_000
    tokenizer.write_text(json.dumps(described))
    with pytest.raises(Unavailable, match="cannot run"):
        reranker.rerank("staging", ranked(["staging", "tea"]))


def test_a_score_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RerankFailed, match="no number"):
        small(tmp_path, scale=float("nan")).rerank("tea", ranked(["tea"]))


def test_a_model_that_embeds_is_no_cross_encoder(tmp_path: Path) -> None:
    files = EncoderFiles(tmp_path / "model.onnx", tmp_path / "tokenizer.json")
    tiny_models.write_encoder(files.model)
    tiny_models.write_tokenizer(files.tokenizer)
    reranker = CrossEncoder("small", lambda: files, USE)
    with pytest.raises(RerankFailed, match="no single score"):
        reranker.rerank("tea", ranked(["tea"]))
