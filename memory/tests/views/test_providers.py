"""The card of the providers on the Engine page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.providers.spec import ProviderSpec
from engine.testing.fake_models import openai_embeddings
from engine.testing.fake_provider import Answer, Provider, Request, json_answer, serving
from memory.models import Provider as Row
from memory.principal import SYSTEM
from memory.services import providers
from memory.tests.views.conftest import Studio
from memory.tests.views.test_engine import SETTINGS

KEY = "sk-0123456789abcdef"
FORM = {"kind": "openai", "enabled": "on"}


@pytest.fixture
def server() -> Iterator[Provider]:
    def respond(request: Request) -> Answer:
        is_list = request.path.endswith("/models")
        return json_answer({"data": [{"id": "a"}]}) if is_list else openai_embeddings(request)

    with serving() as running:
        running.respond = respond
        yield running


def words(text: str) -> str:
    return " ".join(text.split())


def test_without_one_the_card_says_that_everything_is_local(studio: Studio) -> None:
    assert "None is set up. Everything runs on this machine." in studio.text("/engine/")


def test_one_is_added_from_the_catalogue_with_what_is_left_blank(studio: Studio) -> None:
    form = words(studio.text("/engine/providers/add/?kind=cohere", target="dialog"))
    assert 'placeholder="https://api.cohere.com"' in form
    assert 'placeholder="COHERE_API_KEY"' in form
    sent = FORM | {"kind": "cohere", "api_key": KEY, "models": "command-*\n\ncommand-*"}
    answer = studio.post("/engine/providers/add/", sent, target="dialog", at="/engine/")
    assert answer.status_code == 200
    assert "dialog-close" in answer["HX-Trigger"]
    row = Row.objects.get()
    assert (row.name, row.base_url, row.model_names) == ("cohere", "", ["command-*"])
    page = words(studio.text("/engine/"))
    assert "https://api.cohere.com" in page
    assert "***cdef" in page
    assert KEY not in page


def test_a_form_that_cannot_be_says_why_at_its_field(studio: Studio) -> None:
    sent = FORM | {"name": "No name", "base_url": "http://169.254.169.254", "api_key": KEY}
    answer = studio.post("/engine/providers/add/", sent, target="dialog", at="/engine/")
    body = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="provider-name_error"' in body
    assert 'id="provider-base_url_error"' in body
    assert KEY not in body
    assert not Row.objects.exists()


def test_it_is_changed_and_an_untouched_key_stays(studio: Studio) -> None:
    made = providers.create(SYSTEM, ProviderSpec("lab", "openai", api_key=KEY))
    path = f"/engine/providers/{made.id}/edit/"
    form = studio.text(path, target="dialog")
    assert KEY not in form
    assert "stored; leave empty to keep it" in form
    sent = {"kind": "openai", "name": "lab", "base_url": "https://proxy.example/v1"}
    assert studio.post(path, sent | {"revision": "1"}, target="dialog").status_code == 200
    changed = providers.get(SYSTEM, "lab")
    assert (changed.spec.url, changed.spec.enabled, changed.key) == (
        "https://proxy.example/v1",
        False,
        KEY,
    )
    stale = studio.post(path, sent | {"revision": "1"}, target="dialog")
    assert (stale.status_code, "meanwhile" in stale.content.decode()) == (409, True)
    sent |= {"revision": "2", "forget_key": "on"}
    assert studio.post(path, sent, target="dialog").status_code == 200
    assert providers.get(SYSTEM, "lab").key == ""


def test_a_test_shows_what_was_answered(studio: Studio, server: Provider) -> None:
    url = f"http://127.0.0.1:{server.port}/v1"
    made = providers.create(SYSTEM, ProviderSpec("openai", "openai", url, api_key=KEY))
    path = f"/engine/providers/{made.id}/test/"
    body = words(studio.post(path, target="dialog").content.decode())
    assert "1 model" in body
    assert "64 dimensions" in body
    server.script = [Answer(401, b"{}")]
    body = words(studio.post(path, target="dialog").content.decode())
    assert "The provider refuses the key, or there is none." in body


def test_they_are_moved_and_removed(studio: Studio) -> None:
    for name in ("a", "b"):
        providers.create(SYSTEM, ProviderSpec(name, "openai"))
    up = providers.get(SYSTEM, "b").id
    for _again in range(2):
        moved = studio.post(f"/engine/providers/{up}/move/up/", target="engine-providers")
        assert moved.status_code == 200
        assert [entry.name for entry in providers.list_providers(SYSTEM)] == ["b", "a"]
    removed = studio.post(f"/engine/providers/{up}/remove/", target="engine-providers")
    assert "The provider “b” is removed." in removed.content.decode()
    assert [entry.name for entry in providers.list_providers(SYSTEM)] == ["a"]


def test_one_in_use_stays_and_says_so(studio: Studio) -> None:
    made = providers.create(SYSTEM, ProviderSpec("openai", "openai", api_key=KEY))
    chosen = SETTINGS | {"embedding_provider_model": "openai/text-embedding-3-small"}
    assert studio.post("/engine/settings/", chosen, target="engine-settings").status_code == 200
    answer = studio.post(f"/engine/providers/{made.id}/remove/", target="engine-providers")
    assert "The settings use this provider" in answer.content.decode()
    assert "<b>embeddings</b>" in answer.content.decode()
    assert Row.objects.exists()


def test_what_is_set_up_outside_can_only_be_tested(studio: Studio, settings: Any) -> None:
    settings.MEMORY_STUDIO_PROVIDERS = [ProviderSpec("openai", "openai", key_variable="NOWHERE")]
    page = words(studio.text("/engine/"))
    assert '<span class="flag">config.toml</span>' in page
    assert "<code>NOWHERE</code>" in page
    assert "/engine/providers/openai/test/" in page
    assert "/engine/providers/openai/edit/" not in page


def test_models_of_providers_are_offered_in_the_settings(studio: Studio) -> None:
    providers.create(SYSTEM, ProviderSpec("cohere", "cohere", api_key=KEY))
    providers.create(SYSTEM, ProviderSpec("voyage", "voyage"))
    page = studio.text("/engine/")
    assert '<option value="cohere/embed-v4.0">' in page
    assert '<option value="cohere/rerank-v3.5">' in page
    assert "voyage/voyage-4" not in page


def test_a_rerank_model_of_a_provider_needs_no_address(studio: Studio) -> None:
    providers.create(SYSTEM, ProviderSpec("cohere", "cohere", api_key=KEY))
    chosen = SETTINGS | {"rerank": "remote", "rerank_provider_model": "cohere/rerank-v3.5"}
    assert studio.post("/engine/settings/", chosen, target="engine-settings").status_code == 200
    chosen |= {"rerank_provider_model": "rerank-v3.5"}
    assert studio.post("/engine/settings/", chosen, target="engine-settings").status_code == 422
