"""The Engine's settings of what puts hits in order, its models, and what its cards say of them."""

from __future__ import annotations

from typing import Any

import pytest

from memory.principal import SYSTEM
from memory.services import settings as settings_service
from memory.tests.views.conftest import Studio
from memory.tests.views.test_engine import SETTINGS


def saved(studio: Studio, **fields: str) -> Any:
    response = studio.post("/engine/settings/", SETTINGS | fields, target="engine-settings")
    assert "Settings saved." in response.content.decode(), response.content.decode()
    return settings_service.get()


def test_the_order_of_hits_is_set_and_shown(studio: Studio) -> None:
    found = saved(
        studio,
        fusion="rrf",
        weight_keyword="1.5",
        recency_weight="0.2",
        floor="number",
        floor_value="0.25",
    )
    assert (found.fusion, found.fusion_weights) == ("rrf", {"keyword": 1.5})
    assert (found.recency_weight, found.use_weight) == (0.2, 0.0)
    assert found.relevance_floor == 0.25
    page = studio.text("/engine/")
    assert "reciprocal ranks, k = 60" in page
    assert "recency 0.2, use 0" in page
    assert 'value="0.25"' in page
    back = saved(studio)
    assert (back.fusion_weights, back.relevance_floor) == ({}, "off")


def test_a_remote_reranker_keeps_its_key_and_never_shows_it(studio: Studio) -> None:
    fields = {
        "rerank": "remote",
        "rerank_protocol": "cohere",
        "rerank_base_url": "https://rerank.example/v1/rerank",
        "rerank_provider_model": "rerank-2",
        "rerank_api_key": "rk-secret-77",
    }
    found = saved(studio, **fields)
    assert (found.reranker, found.rerank_protocol) == ("remote", "cohere")
    assert (found.rerank_enabled, found.rerank_provider_model) == (True, "rerank-2")
    page = studio.text("/engine/")
    assert "rk-secret" not in page
    kept = saved(studio, **{**fields, "rerank_api_key": ""})
    assert kept.rerank_api_key == found.rerank_api_key
    assert saved(studio).reranker == "none"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rerank": "remote"}, "rerank_base_url"),
        ({"rerank": "remote", "rerank_base_url": "ftp://x"}, "rerank_base_url"),
        ({"rerank": "magic"}, "rerank"),
        ({"floor": "number"}, "floor_value"),
        ({"floor": "number", "floor_value": "2"}, "floor_value"),
        ({"weight_keyword": "11"}, "weight_keyword"),
        ({"recency_weight": "1.1"}, "recency_weight"),
        ({"custom_protocol": "soap"}, "custom_protocol"),
        ({"local_model": "not-there"}, "local_model"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    studio: Studio, fields: dict[str, str], field: str
) -> None:
    before = settings_service.get()
    response = studio.post("/engine/settings/", SETTINGS | fields, target="engine-settings")
    assert response.status_code == 422
    assert f'id="set-{field}_error"' in response.content.decode()
    assert settings_service.get() == before


def test_a_reranker_that_cannot_run_says_why(studio: Studio) -> None:
    settings_service.update(SYSTEM, {"rerankEnabled": True, "rerankProviderModel": "acme/rerank"})
    assert "No provider has the name" in studio.text("/engine/", target="engine-tiers")
    settings_service.update(SYSTEM, {"rerankProviderModel": "rerank"})
    assert "The rerank service has no address" in studio.text("/engine/", target="engine-tiers")
    settings_service.update(SYSTEM, {"rerankKind": "cross-encoder"})
    assert "No cross-encoder is installed" in studio.text("/engine/", target="engine-tiers")
    settings_service.update(SYSTEM, {"rerankKind": "light"})
    assert "card-on" in studio.text("/engine/", target="engine-tiers")


def test_fusion_without_vectors_says_that_there_is_one_list(studio: Studio) -> None:
    assert "There is one list only" in studio.text("/engine/", target="engine-tiers")


def test_models_are_listed_with_how_to_install_the_others(studio: Studio) -> None:
    page = " ".join(studio.text("/engine/", target="engine-models").split())
    assert "multilingual-e5-small" in page
    assert "<code>python manage.py rag model-install potion-base-8m</code>" in page
    assert "chosen" in page


def test_only_installed_embedding_models_can_be_chosen(studio: Studio) -> None:
    page = studio.text("/engine/", target="engine-settings")
    assert '<option value="multilingual-e5-small" selected' in page
    assert 'value="potion-base-8m"' not in page
    assert 'value="ms-marco-minilm-l6-v2"' not in page
