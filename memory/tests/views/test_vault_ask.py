"""Files put into a vault by its page, and asking it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from engine.testing.fake_provider import Answer, Request
from memory import vault_wiring
from memory.models import Vault, VaultAsset
from memory.principal import Principal
from memory.services.vaults import lifecycle
from memory.tests.vaults import REFUNDS, fill, opened, sealed, sent, writer, writes
from memory.tests.views.conftest import Studio

pytestmark = pytest.mark.django_db
QUESTION: dict[str, Any] = {
    "q": "When are refunds paid?",
    "mode": "keyword",
    "match": "any",
    "limit": 8,
    "rerank": "on",
}


def path_of(vault: Vault, rest: str = "") -> str:
    return f"/vaults/{vault.uid}/{rest}"


def asked(studio: Studio, vault: Vault, **fields: Any) -> Any:
    path = path_of(vault, "ask/")
    return studio.post(path, QUESTION | fields, target="vault-answer", at=path)


def file(name: str, data: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def test_each_file_is_taken_or_refused_by_itself(studio: Studio, alice: Principal) -> None:
    vault = sealed(alice)
    files = [
        file("a.md", b"# Refunds\nSeven days."),
        file("<b>.txt", "返金".encode("utf-16")),
        file("c.pdf", b"%PDF-1.7"),
        file("d.txt", b"bad \xff"),
    ]
    page = studio.post(path_of(vault, "ingest/"), {"files": files}).content.decode()
    assert page.count("chip-failed") == 3 and "new card" in page
    assert "begins with %PDF-" in page and "&lt;b&gt;.txt" in page and "UTF-8" in page
    assert VaultAsset.objects.count() == 1
    again = {"files": [file("a.md", b"# Refunds\nEight days.")]}
    part = studio.post(path_of(vault, "ingest/"), again, target="vault-files").content.decode()
    assert "<html" not in part and "revision 2" in part
    none = studio.post(path_of(vault, "ingest/"))
    assert none.status_code == 422 and "No file was chosen." in none.content.decode()


def test_a_large_file_touches_no_disk(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path / "nowhere")
    vault = sealed(alice)
    large = {"files": [file("large.md", b"word " * 500_000)]}
    assert "new card" in studio.post(path_of(vault, "ingest/"), large).content.decode()


def test_a_form_without_its_token_is_refused(studio: Studio, alice: Principal) -> None:
    studio.client.handler.enforce_csrf_checks = True
    refused = studio.post(path_of(sealed(alice), "ingest/"), {"files": [file("a.md", b"text")]})
    assert refused.status_code == 403 and not VaultAsset.objects.exists()


def test_without_a_service_the_page_says_how_to_name_one(studio: Studio, alice: Principal) -> None:
    vault = opened(alice)
    page = studio.text(path_of(vault, "ask/"))
    assert "[rag.generation]" in page and "config.toml" in page
    assert "not that it is true" in page


def test_an_answer_leads_to_its_passages(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    with writer(settings, tmp_path) as provider:
        lifecycle.unlock(alice, str(vault.uid), passphrase="correct horse battery")
        page = asked(studio, vault).content.decode()
        assert "<html" not in page and ">[S1]</a>" in page and "Within seven days" in page
        assert "generation-model" in page and "cited" in page
        assert REFUNDS in sent(provider)
        whole = studio.post(path_of(vault, "ask/"), QUESTION)
        assert whole["Cache-Control"] == "no-store" and "<html" in whole.content.decode()
        form = studio.text(path_of(vault, "ask/"))
        assert "cannot be recalled" in form and "may cost money" in form
        provider.respond = writes('{"answer": "<img src=x> [S1]", "citations": ["S1"]}')
        assert "&lt;img src=x&gt;" in asked(studio, vault).content.decode()
        provider.respond = writes('{"answer": "Yes [S99].", "citations": ["S99"]}')
        odd = asked(studio, vault)
        assert odd.status_code == 503 and "cites no existing passage" in odd.content.decode()


def test_too_little_evidence_is_a_calm_state(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    vault = opened(alice)
    fill(alice, vault)
    with writer(settings, tmp_path) as provider:
        nothing = asked(studio, vault, q="zebra").content.decode()
        assert "nothing was sent" in nothing and not provider.requests
        declined = '{"answer": "", "citations": [], "insufficient_evidence": true}'
        provider.respond = writes(declined)
        page = asked(studio, vault).content.decode()
        assert "The vault does not say" in page and "Refund policy" in page
        assert 'role="alert"' not in page
        assert asked(studio, vault, q="").status_code == 422


def test_a_lock_meanwhile_shows_no_answer(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    with writer(settings, tmp_path) as provider:
        lifecycle.unlock(alice, str(vault.uid), passphrase="correct horse battery")
        answer = writes()

        def locked(request: Request) -> Answer:
            vault_wiring.keeper().lock(str(vault.uid))
            return answer(request)

        provider.respond = locked
        page = asked(studio, vault)
        assert page.status_code == 409 and "No answer is shown" in page.content.decode()
        assert "cannot be recalled" in page.content.decode() and len(provider.requests) == 1
        assert "Within seven days" not in page.content.decode()
        assert "This vault is locked" in studio.text(path_of(vault, "ask/"))
