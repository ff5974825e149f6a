"""The page of the services of vaults: what it tells, takes, refuses and tries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from engine.testing.fake_provider import Answer, Provider
from memory.principal import SYSTEM, Principal
from memory.services import providers
from memory.services.vaults import choosing
from memory.tests.vault_lab import KEY, filled, lab, running
from memory.tests.vaults import configure
from memory.tests.views.conftest import Studio

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/vaults/services/"
BLANK = {"embedding": "", "dimensions": "", "generation": "", "json_mode": "off", "rerank": ""}
FILE = """
[rag.embedding]
protocol = "gemini"
url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:embedContent"
model = "gemini-embedding-001"
api_key_env = "VAULT_TEST_KEY"
"""


@pytest.fixture
def server(settings: Any, tmp_path: Path, first_start: None) -> Iterator[Provider]:
    with running(settings, tmp_path) as one:
        yield one


def test_what_is_sent_where_stands_beside_each_choice(studio: Studio, server: Provider) -> None:
    page = studio.text(PATH)
    for text in (
        "your consent",
        "cannot be recalled",
        "tried up to 2 more times",
        "may cost money",
        "title and text of every chunk",
        "after each unlock or start",
        "each question, with the chunks",
        "with up to 100 chunks",
        "There is no provider yet",
    ):
        assert text in page
    assert "service-test" in page and 'value="embedding"' not in page
    assert 'href="/vaults/services/"' in studio.text("/vaults/")


def test_a_choice_is_saved_shown_and_tried(
    studio: Studio, server: Provider, alice: Principal
) -> None:
    lab(server)
    answer = studio.post(PATH, BLANK | {"embedding": "lab/e", "dimensions": 32, "revision": 0})
    assert (answer.status_code, answer["Location"]) == (303, PATH)
    page = studio.text(PATH)
    assert "The services of vaults are saved" in page
    assert f"http://127.0.0.1:{server.port}/v1/embeddings" in page
    assert "stored sealed with the provider" in page and KEY not in page
    assert re.search(r"<b>vaults</b>", studio.text("/engine/"))
    tried = studio.post(f"{PATH}test/", {"service": "embedding"}).content.decode()
    assert "works" in tried and "32 dimensions" in tried and " ms" in tried
    server.respond = lambda request: Answer(429)
    tried = studio.post(f"{PATH}test/", {"service": "embedding"}).content.decode()
    assert "rate_limited" in tried and "HTTP&nbsp;429" in tried
    vault = filled(alice)
    shown = studio.text(f"/vaults/{vault.uid}/")
    assert f"127.0.0.1:{server.port}" in shown and '<span class="flag">lab</span>' in shown
    providers.update(SYSTEM, "lab", {"enabled": False})
    assert "provider_off" in studio.text(f"/vaults/{vault.uid}/")
    assert "switched off" in studio.text(PATH)


def test_what_cannot_be_chosen_is_told_at_its_field_and_kept(
    studio: Studio, server: Provider
) -> None:
    lab(server, kind="gemini")
    answer = studio.post(PATH, BLANK | {"embedding": "nobody/e", "rerank": "lab/r"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "services-embedding_error" in page and "services-rerank_error" in page
    assert 'value="nobody/e"' in page
    assert studio.post(PATH, BLANK | {"dimensions": 99999}).status_code == 422
    stale = studio.post(PATH, BLANK | {"embedding": "lab/e", "revision": 5})
    assert stale.status_code == 409
    assert choosing.get(SYSTEM).kept.revision == 0


def test_what_the_file_decides_is_shown_with_its_variable_and_has_no_field(
    studio: Studio,
    server: Provider,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab(server)
    configure(settings, tmp_path, FILE)
    page = studio.text(PATH)
    assert "[rag.embedding]" in page and "services-embedding" not in page
    assert "VAULT_TEST_KEY" in page and "not set" in page
    monkeypatch.setenv("VAULT_TEST_KEY", "sk-never-shown")
    page = studio.text(PATH)
    assert "not set" not in page and "sk-never-shown" not in page
    # A field that is sent all the same changes nothing.
    answer = studio.post(PATH, BLANK | {"embedding": "lab/e", "rerank": "lab/r"})
    assert answer.status_code == 303
    kept = choosing.get(SYSTEM).kept
    assert (kept.embedding, kept.rerank) == (None, "lab/r")


def test_only_who_is_signed_in_gets_there_and_only_known_services_are_tried(
    studio: Studio, server: Provider
) -> None:
    for method, path in (("get", PATH), ("post", PATH), ("post", f"{PATH}test/")):
        answer = getattr(Client(), method)(path)
        assert (answer.status_code, answer["Location"][:8]) == (302, "/signin/")
    assert studio.post(f"{PATH}test/", {"service": "other"}).status_code == 404
    assert studio.post(f"{PATH}test/", {"service": "rerank"}).status_code == 404
    assert studio.get(f"{PATH}test/").status_code == 405


def test_a_page_of_questions_leads_to_the_choice(
    studio: Studio, server: Provider, alice: Principal
) -> None:
    vault = filled(alice)
    assert 'href="/vaults/services/"' in studio.text(f"/vaults/{vault.uid}/ask/")
    lab(server)
    choosing.update(SYSTEM, {"generationProviderModel": "lab/writer"})
    page = studio.text(f"/vaults/{vault.uid}/ask/")
    assert f"127.0.0.1:{server.port}" in page and "writer" in page and "ask-run" in page
