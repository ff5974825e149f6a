"""The local model of vaults: its folder, its bounds, and that it needs no network."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from engine.embed import catalogue
from engine.embed.onnx import OnnxSource
from engine.types import Mode
from engine.vault.errors import VaultError
from memory import vault_wiring
from memory.models import Vault
from memory.principal import Principal
from memory.services.vaults import lifecycle, searching
from memory.tests.vaults import configure, fill, query, sealed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def vault(alice: Principal) -> Vault:
    return lifecycle.update(alice, str(sealed(alice).uid), {"embedding_model": "embeddinggemma"})


def test_a_folder_of_ones_own_is_used_and_what_it_lacks_is_named(
    alice: Principal, settings: Any, tmp_path: Path, vault: Vault
) -> None:
    configure(settings, tmp_path, '[rag]\nlocal_model_dir = "./own"\n')
    entry = catalogue.find("embeddinggemma", tmp_path / "models")
    (tmp_path / "own").mkdir()
    for file in entry.files:
        if file.role != "tokenizer":
            path = tmp_path / "own" / file.path
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as whole:
                whole.truncate(file.bytes)
    lifecycle.unlock(alice, "notes", passphrase="correct horse battery")
    fill(alice, vault)
    with pytest.raises(VaultError, match=r"missing: tokenizer\.json") as refused:
        searching.find(alice, query(vault))
    assert refused.value.code == "model_not_installed"


def test_threads_and_tokens_of_the_local_model_are_those_of_the_file(
    settings: Any, tmp_path: Path, vault: Vault
) -> None:
    configure(settings, tmp_path, "[rag]\nlocal_threads = 2\nmax_tokens = 99\n")
    source = vault_wiring.source(vault)
    assert isinstance(source, OnnxSource)
    assert (source.use.threads, source.use.max_tokens) == (2, 99)


def test_a_local_model_opens_no_connection(
    alice: Principal, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(settings, tmp_path, "")
    made = sealed(alice)
    fill(alice, made)
    lifecycle.update(alice, "notes", {"embedding_model": "all-minilm-l6-v2-int8"})
    opened: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda *address: opened.append(address))
    assert searching.find(alice, query(made, mode=Mode.VECTOR)).embedded == 3
    assert opened == []


def test_the_light_reranker_is_called_a_rule() -> None:
    page = (Path(__file__).parents[2] / "docs/vaults.md").read_text(encoding="utf-8")
    assert "That is a rule, no\n  trained model." in page
    assert "cross-encoder" not in page
