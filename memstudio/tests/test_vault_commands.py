"""The commands of the second seed, as it prints them, and those of a vault's life."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.providers.spec import ProviderSpec
from engine.testing.fake_provider import json_answer, serving
from memory import vault_wiring
from memory.models import Vault, VaultAsset
from memory.principal import SYSTEM
from memory.services import providers
from memory.services.vaults import choosing
from memstudio.cli.api import CONFLICT, DENIED, MISSING, UNREACHABLE, USAGE
from memstudio.tests.test_commands import answer, failed, first_start, run

__all__ = ["first_start"]

PASSPHRASE = "correct horse battery"
NOTES = "Refunds are paid within seven days.\n\n退款在七天内完成。\n"


@pytest.fixture(autouse=True)
def keeping(
    first_start: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    settings.MEMORY_STUDIO_KEEPS_VAULTS = True
    settings.MEMORY_STUDIO_VAULT_MEMORY_MIB = 19
    settings.MEMORY_STUDIO_HOME = tmp_path
    monkeypatch.setenv("MEMORY_STUDIO_PASSPHRASE", PASSPHRASE)
    vault_wiring.reset()
    yield
    vault_wiring.reset()


@pytest.fixture
def notes(tmp_path: Path) -> str:
    (tmp_path / "notes.md").write_text(NOTES, encoding="utf-8")
    made = answer("vault", "create", "research")
    assert len(made["recoveryKey"]) == 47
    file = str(tmp_path / "notes.md")
    answer("rag", "ingest", "research", file, "--title", "Research notes")
    return str(made["id"])


def test_the_commands_of_the_seed_run_as_they_are_printed(notes: str) -> None:
    grouped = answer("memory", "search", notes, "refunds 退款")
    assert [hit["title"] for hit in grouped["results"]] == ["Research notes"]
    strict = ("--mode", "bm25", "--match-mode", "all")
    found = answer("rag", "search", notes, "seven days", *strict, "--limit", "8", "--cards-only")
    assert found["match_mode"] == "all"
    assert NOTES.encode()[: found["results"][0]["byte_end"]].decode() == NOTES
    assert "[S1]" in run("rag", "search", notes, "seven days", "--mode", "bm25", "--no-rerank")
    assert "1 card" in run("rag", "status", notes)
    assert failed("rag", "ask", notes, "What does the evidence say?", "--mode", "bm25")[0] == (
        UNREACHABLE
    )
    assert "embeddinggemma" in run("rag", "model-list")


def test_a_question_is_answered_with_its_sources(notes: str, tmp_path: Path) -> None:
    content = json.dumps({"answer": "Seven days [S1].", "citations": ["S1"]})
    with serving() as provider:
        provider.respond = lambda request: json_answer(
            {"choices": [{"message": {"content": content}}]}
        )
        (tmp_path / "config.toml").write_text(
            f'[rag.generation]\nprotocol = "compatible"\nmodel = "m"\n'
            f'url = "http://127.0.0.1:{provider.port}/chat"\n'
        )
        vault_wiring.reset()
        text = run("rag", "ask", notes, "refunds", "--mode", "bm25")
    assert text.startswith("Seven days [S1].\n")
    assert "[S1]" in text.split("\n", 1)[1]
    assert "not that it is true" in text


def test_reading_a_file_again_makes_a_revision(notes: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    assert "unchanged" in run("rag", "ingest", notes, str(file), "--title", "Research notes")
    file.write_text("Other words.", encoding="utf-8")
    assert "revised" in run("rag", "ingest", notes, str(file), "--title", "Research notes")
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    status, sentence = failed("rag", "ingest", notes, str(tmp_path / "a.pdf"))
    assert (status, "PDF" in sentence, "a.pdf: " in sentence) == (USAGE, True, True)
    assert failed("rag", "ingest", notes, str(tmp_path / "missing.md"))[0] == USAGE
    assert failed("rag", "ingest", notes, str(file), str(file), "--title", "x")[0] == USAGE
    assert VaultAsset.objects.count() == 1


def test_a_vault_is_given_a_model_and_a_length_and_the_default_again(notes: str) -> None:
    named = answer("vault", "update", notes, "--model", "embeddinggemma", "--dim", "256")
    assert (named["embeddingModel"], named["embeddingDim"]) == ("embeddinggemma", 256)
    # The length of one model is none of another: it goes with it, by name.
    refused = failed("vault", "update", notes, "--model", "multilingual-e5-small")
    assert refused[0] == USAGE and "length" in refused[1]
    plain = answer("vault", "update", notes, "--model", "multilingual-e5-small", "--dim", "0")
    assert (plain["embeddingModel"], plain["embeddingDim"]) == ("multilingual-e5-small", None)
    assert answer("vault", "update", notes, "--model", "")["embeddingModel"] == ""
    text = run("rag", "status", notes)
    assert "answers    not configured" in text and "ranking    the light rule" in text


def test_the_services_of_vaults_are_told_chosen_and_tried(notes: str) -> None:
    with serving() as server:
        at = f"http://127.0.0.1:{server.port}/v1"
        providers.create(SYSTEM, ProviderSpec("lab", "compatible", at))
        assert "embedding   none" in run("rag", "services")
        text = run("rag", "services", "embeddingProviderModel=lab/e", "embeddingDimensions=3")
        assert f"embedding   e at 127.0.0.1:{server.port} (studio: lab), without a key" in text
        tried = answer("rag", "service-test", "embedding")
        assert (tried["ok"], tried["dimensions"]) == (True, 3)
        assert "ok" in run("rag", "service-test", "embedding")
    assert answer("rag", "service-test", "embedding")["code"] == "upstream_error"
    assert failed("rag", "service-test", "rerank")[0] == MISSING
    assert failed("rag", "services", "embeddingProviderModel=nobody/e")[0] == USAGE
    assert failed("rag", "services", "embeddingProviderModel")[0] == USAGE
    assert answer("rag", "services", "embeddingProviderModel=null")["inForce"]["embedding"] is None


def test_the_services_of_vaults_are_in_the_status(notes: str, tmp_path: Path) -> None:
    providers.create(SYSTEM, ProviderSpec("lab", "compatible", "http://127.0.0.1:9/v1"))
    choosing.update(SYSTEM, {"rerankProviderModel": "lab/ranker"})
    (tmp_path / "config.toml").write_text(
        '[rag.generation]\nprotocol = "gemini"\nmodel = "m"\nurl = "https://a.example/x"\n'
    )
    vault_wiring.reset()
    text = run("rag", "status", notes)
    assert "answers    m at a.example (config.toml)" in text
    assert "ranking    ranker at 127.0.0.1:9 (studio: lab)" in text
    providers.update(SYSTEM, "lab", {"enabled": False})
    assert "(studio: lab), cannot be used: provider_off" in run("rag", "status", notes)


def test_the_life_of_a_vault(notes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "research" in run("vault", "list")
    assert answer("vault", "lock", "research")["unlocked"] is False
    assert answer("vault", "update", notes, "--name", "papers", "--device-only", "yes")[
        "deviceOnly"
    ]
    monkeypatch.setenv("MEMORY_STUDIO_NEW_PASSPHRASE", "another passphrase")
    assert "Recovery key: " in run("vault", "passphrase", notes)
    assert failed("rag", "search", notes, "x", "--mode", "bm25")[0] == DENIED
    monkeypatch.setenv("MEMORY_STUDIO_PASSPHRASE", "another passphrase")
    assert answer("rag", "search", notes, "refunds", "--mode", "bm25")["results"]
    assert failed("vault", "unlock", notes)[0] == USAGE
    assert failed("vault", "delete", notes)[0] == USAGE
    run("vault", "delete", notes, "--yes")
    assert not Vault.objects.exists()


def test_without_a_studio_and_a_passphrase_a_sealed_vault_stays_shut(
    notes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer("vault", "lock", notes)
    monkeypatch.delenv("MEMORY_STUDIO_PASSPHRASE")
    status, sentence = failed("rag", "search", notes, "x", "--mode", "bm25")
    assert (status, "start one" in sentence) == (CONFLICT, True)


def test_things_are_put_in_listed_and_taken_out(
    notes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("hunter2"))
    put = answer("vault", "put", notes, "-", "--kind", "credential", "--title", "Mail")
    assert "hunter2" in run("vault", "get", notes, put["id"])
    assert "credential" in run("vault", "assets", notes)
    assert answer("vault", "assets", notes, "--kind", "card")["total"] == 1
    run("vault", "remove", notes, put["id"])
    assert failed("vault", "get", notes, put["id"])[0] == MISSING
    run("vault", "restore", notes, put["id"])
    assert run("vault", "revisions", notes, put["id"]).startswith("REVISION")


def test_grants_are_given_and_ended(notes: str) -> None:
    answer("keys", "create", "bob")
    assert failed("rag", "status", notes, "--as", "bob")[0] == MISSING
    assert answer("vault", "grant", notes, "bob")["role"] == "reader"
    assert answer("rag", "status", notes, "--as", "bob")["role"] == "reader"
    assert "bob" in run("vault", "grants", notes)
    run("vault", "revoke", notes, "bob")
    assert failed("rag", "status", notes, "--as", "bob")[0] == MISSING


def test_an_open_vault_needs_no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORY_STUDIO_PASSPHRASE")
    monkeypatch.setattr(sys, "stdin", io.StringIO("Tea is served at four."))
    made = answer("vault", "create", "library", "--open")
    assert (made["sealed"], made["recoveryKey"]) == (False, None)
    answer("vault", "put", "library", "-", "--kind", "memory")
    assert "Tea is served" in run("memory", "search", "library", "tea")
    assert failed("memory", "search", "library", "tea", "--strategy", "hybrid")[0] == USAGE


def test_a_vault_goes_through_a_file(
    notes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes.msv"
    monkeypatch.setenv("MEMORY_STUDIO_NEW_PASSPHRASE", "for the journey only")
    assert answer("vault", "export", notes, str(file))["assets"] == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"Refunds" not in file.read_bytes()
    monkeypatch.setenv("MEMORY_STUDIO_PASSPHRASE", "for the journey only")
    text = run("vault", "import", str(file), "--name", "copy")
    assert "1 created" in text and "Recovery key" in text
    assert "Refunds" in run("memory", "search", "copy", "refunds")
    assert failed("vault", "import", str(tmp_path / "missing"))[0] == USAGE


def test_the_status_of_an_open_vault_has_no_limits(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text(NOTES, encoding="utf-8")
    answer("vault", "create", "library", "--open")
    answer("rag", "ingest", "library", str(tmp_path / "notes.md"))
    assert "in the database, 1 chunks, " in run("rag", "status", "library")
    assert answer("rag", "search", "library", "refunds")["results"]
