"""A vault's own embedding model on the page of its rules: what there is, and what it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from engine.embed import catalogue
from engine.testing.fake_models import openai_embeddings
from engine.testing.fake_provider import serving
from engine.types import Mode
from memory import vault_wiring
from memory.models import Vault
from memory.principal import Principal
from memory.services.vaults import lifecycle, searching
from memory.tests.vaults import configure, fill, opened, query, sealed, service
from memory.tests.views.conftest import Studio

pytestmark = pytest.mark.django_db(transaction=True)
GEMMA = "embeddinggemma"


def path_of(vault: Vault, rest: str = "rules/") -> str:
    return f"/vaults/{vault.uid}/{rest}"


def options(page: str) -> dict[str, bool]:
    """The choices of the select by value, and whether each can be chosen."""
    select = page[page.index('id="model-model"') :]
    select = select[: select.index("</select>")]
    found = re.findall(r'<option value="([^"]*)"([^>]*)>', select)
    return {value: "disabled" not in rest for value, rest in found}


def installed(folder: Path) -> None:
    """EmbeddingGemma, as far as anybody looks before it is loaded."""
    folder.mkdir()
    for file in catalogue.find(GEMMA).files:
        path = folder / file.path
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as whole:
            whole.truncate(file.bytes)


def test_what_is_not_installed_is_shown_with_the_command_and_cannot_be_chosen(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    configure(settings, tmp_path, "")
    vault = opened(alice)
    page = studio.text(path_of(vault))
    found = options(page)
    assert found["multilingual-e5-small:"] and found["use-multilingual:"] and found[""]
    gemma = {f"{GEMMA}:{n}": False for n in ("", 512, 256, 128)}
    assert gemma.items() <= found.items()
    assert "python manage.py rag model-install embeddinggemma" in page
    assert "ms-marco" not in page
    for value in (f"{GEMMA}:256", "nobody:", "multilingual-e5-small:256", "ms-marco-minilm-l6-v2:"):
        answer = studio.post(path_of(vault, "model/"), {"model": value})
        assert answer.status_code == 422
        assert "model-model_error" in answer.content.decode()
    vault.refresh_from_db()
    assert (vault.embedding_model, vault.embedding_dim) == ("", None)


def test_every_length_of_an_installed_model_can_be_chosen(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    installed(tmp_path / "own")
    configure(settings, tmp_path, '[rag]\nlocal_model_dir = "./own"\n')
    vault = opened(alice)
    assert options(studio.text(path_of(vault)))[f"{GEMMA}:128"]
    for length, chosen in ((512, 512), (256, 256), (128, 128), ("", None)):
        answer = studio.post(path_of(vault, "model/"), {"model": f"{GEMMA}:{length}"})
        assert answer.status_code == 303
        vault.refresh_from_db()
        assert (vault.embedding_model, vault.embedding_dim) == (GEMMA, chosen)
        page = studio.text(path_of(vault))
        assert f'<option value="{GEMMA}:{length}" selected>' in page
        assert vault_wiring.source(vault).signature.dim == (chosen or 768)


def test_another_model_embeds_every_chunk_anew_and_sends_nothing_to_a_service(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    with serving() as server:
        server.respond = openai_embeddings
        configure(settings, tmp_path, service("embedding", server.port, "embed"))
        vault = sealed(alice)
        fill(alice, vault)
        searching.find(alice, query(vault, mode=Mode.VECTOR))
        asked = len(server.requests)
        assert asked
        page = studio.text(path_of(vault))
        assert f"A service at 127.0.0.1:{server.port} embeds for vaults" in page
        answer = studio.post(path_of(vault, "model/"), {"model": "use-multilingual:"})
        assert answer.status_code == 303
        assert searching.status(alice, "notes").figures.embedded == 0
        assert searching.find(alice, query(vault, mode=Mode.VECTOR)).embedded == 3
        assert searching.status(alice, "notes").backend.model == "use-multilingual"
        assert len(server.requests) == asked
        studio.post(path_of(vault, "model/"), {"model": ""})
        searching.find(alice, query(vault, mode=Mode.VECTOR))
        assert len(server.requests) > asked


def test_what_was_chosen_elsewhere_is_kept_as_it_is(studio: Studio, alice: Principal) -> None:
    vault = opened(alice)
    lifecycle.update(alice, "library", {"embedding_model": GEMMA, "embedding_dim": 256})
    page = studio.text(path_of(vault))
    # Not installed, but the choice of this vault: saving the page must not change it.
    assert options(page)[f"{GEMMA}:256"] and not options(page)[f"{GEMMA}:128"]
    assert f'<option value="{GEMMA}:256" selected>' in page
    assert studio.post(path_of(vault, "model/"), {"model": f"{GEMMA}:256"}).status_code == 303
    lifecycle.update(alice, "library", {"embedding_model": "", "embedding_dim": 512})
    page = studio.text(path_of(vault))
    assert '<option value=":512" selected>' in page
    assert studio.post(path_of(vault, "model/"), {"model": ":512"}).status_code == 303
    vault.refresh_from_db()
    assert (vault.embedding_model, vault.embedding_dim) == ("", 512)


def test_the_default_is_named(studio: Studio, alice: Principal) -> None:
    assert "Default: multilingual-e5-small, this machine" in studio.text(path_of(sealed(alice)))
    library = opened(alice)
    page, model = studio.text(path_of(library)), searching.status(alice, "library").backend.model
    assert f"Default: {model}, this machine" in page
    assert "with the bounds of sealed vaults" in page


def test_a_file_that_cannot_be_read_leaves_the_rules_and_the_end_of_a_vault(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    vault = opened(alice)
    configure(settings, tmp_path, "[rag\nbroken")
    page = studio.text(path_of(vault))
    assert "config.toml: this is no TOML file" in page and "model-save" not in page
    assert "rules-save" in page and "vault-remove" in page
    assert studio.get("/vaults/services/").status_code == 503
