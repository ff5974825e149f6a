"""Which local models can be chosen, and what is built of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.embed import catalogue, installed
from engine.errors import EmbeddingFailed, RerankFailed
from engine.testing import tiny_models
from engine.testing.contracts_rerank import ANSWER, QUERY, TEXTS, ranked
from memory import local_sources


def test_packaged_models_are_always_offered(tmp_path: Path) -> None:
    found = [entry.id for entry in local_sources.offered(tmp_path)]
    assert found == ["multilingual-e5-small", "use-multilingual", "all-minilm-l6-v2-int8"]


def test_a_packaged_model_of_each_name_knows_its_signature(tmp_path: Path) -> None:
    for build in (
        local_sources.multilingual_e5_small,
        local_sources.use_multilingual,
        local_sources.all_minilm_l6_v2_int8,
    ):
        source = build(models_dir=tmp_path, template="t9")
        assert source.signature.revision.endswith("+t9")
    assert list(tmp_path.iterdir()) == []


def test_a_shorter_length_is_a_signature_of_its_own(tmp_path: Path) -> None:
    build = local_sources.from_catalogue
    source = build("embeddinggemma", models_dir=tmp_path, template="t1", dim=256)
    assert source.signature.dim == 256


def test_a_reranker_is_built_before_it_is_installed(tmp_path: Path) -> None:
    reranker = local_sources.cross_encoder("ms-marco-minilm-l6-v2", models_dir=tmp_path)
    with pytest.raises(RerankFailed) as caught:
        reranker.rerank(QUERY, ranked(TEXTS))
    assert caught.value.code == "model_not_installed"


def test_an_installed_reranker_ranks(tmp_path: Path) -> None:
    entry = catalogue.find("ms-marco-minilm-l6-v2")
    folder = installed.folder_of(tmp_path, entry)
    tiny_models.write_cross_encoder(folder / entry.file("model").path, scale=0.01)
    tiny_models.write_tokenizer(folder / entry.file("tokenizer").path)
    small = "".join(
        f'{{"path": "{file.path}", "bytes": {(folder / file.path).stat().st_size},'
        f' "sha256": "{file.sha256}", "role": "{file.role}"}},'
        for file in entry.files
    )
    (tmp_path / catalogue.NAME).write_text(
        '{"models": [{"id": "small", "kind": "cross-encoder", "title": "Small", "max_tokens": 64,'
        ' "scripts": "all", "licence": "MIT", "repository": "a/b", "revision": '
        f'"{entry.revision}", "files": [{small[:-1]}]}}]}}'
    )
    folder.rename(tmp_path / "small")
    reranker = local_sources.cross_encoder("small", models_dir=tmp_path)
    given = ranked(TEXTS)
    assert reranker.rerank(QUERY, given)[0].passage_id == given[ANSWER][0].passage_id


def test_an_encoder_is_no_reranker(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingFailed, match="no reranker"):
        local_sources.cross_encoder("use-multilingual", models_dir=tmp_path)
