from __future__ import annotations

from pathlib import Path

import pytest

from engine.vault import capacity, config
from engine.vault.config import Http, RagConfig, Service
from engine.vault.errors import ConfigInvalid, VaultError

AS_PRINTED = """
[rag]
local_model_dir = "./models/embeddinggemma"
local_threads = 4
max_tokens = 2048
[rag.embedding]
protocol = "gemini"
url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:embedContent"
model = "gemini-embedding-001"
dimensions = 768
api_key_env = "GEMINI_API_KEY"
[rag.generation]
protocol = "gemini"
url = "https://generativelanguage.googleapis.com/v1beta/models/YOUR_MODEL:generateContent"
model = "YOUR_MODEL"
api_key_env = "GEMINI_API_KEY"
[rag.rerank]
protocol = "compatible"
url = "https://your-reranker.example/rerank"
model = "YOUR_RERANKER"
api_key_env = "RERANK_API_KEY"
[rag.http]
use_env_proxy = true
proxy_url = "http://127.0.0.1:7890"
retries = 2
backoff_ms = 500
connect_timeout_seconds = 10
timeout_seconds = 60
download_timeout_seconds = 900
[[providers]]
name = "another part's affair"
"""


def test_the_tables_of_the_seed_are_read_as_printed(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(AS_PRINTED)
    found = config.load(tmp_path / "config.toml")
    assert found.local_model_dir == tmp_path / "models" / "embeddinggemma"
    assert found.rerank == Service(
        "compatible", "https://your-reranker.example/rerank", "YOUR_RERANKER", "RERANK_API_KEY"
    )
    assert found.embedding is not None and found.embedding.dimensions == 768
    assert found.http == Http(proxy_url="http://127.0.0.1:7890")


def test_without_a_file_nothing_leaves_the_machine(tmp_path: Path) -> None:
    found = config.load(tmp_path / "config.toml")
    assert found == RagConfig(tmp_path / "models" / "embeddinggemma")
    assert (found.embedding, found.generation, found.rerank) == (None, None, None)


def with_service(name: str, **changed: object) -> dict[str, object]:
    whole = {"protocol": "compatible", "url": "https://a.example/x", "model": "m", **changed}
    return {name: {key: value for key, value in whole.items() if value is not None}}


@pytest.mark.parametrize(
    ("rag", "key", "code"),
    [
        ({"unknown": 1}, "rag.unknown", "unknown_key"),
        ({"local_threads": 0}, "rag.local_threads", "out_of_range"),
        ({"local_threads": True}, "rag.local_threads", "type"),
        ({"local_threads": 4.0}, "rag.local_threads", "type"),
        ({"max_tokens": 4096}, "rag.max_tokens", "out_of_range"),
        ({"local_model_dir": 3}, "rag.local_model_dir", "type"),
        (
            {"model_download_base_url": "http://mirror.example"},
            "rag.model_download_base_url",
            "https_required",
        ),
        ({"http": {"retries": 6}}, "rag.http.retries", "retries_out_of_range"),
        ({"http": {"retries": "2"}}, "rag.http.retries", "type"),
        ({"http": {"verify_tls": False}}, "rag.http.verify_tls", "unknown_key"),
        ({"http": {"timeout_seconds": 0}}, "rag.http.timeout_seconds", "out_of_range"),
        ({"http": {"timeout_seconds": float("nan")}}, "rag.http.timeout_seconds", "out_of_range"),
        ({"http": {"use_env_proxy": 1}}, "rag.http.use_env_proxy", "type"),
        ({"http": {"proxy_url": "ftp://x"}}, "rag.http.proxy_url", "proxy_scheme"),
        ({"http": []}, "rag.http", "type"),
        ({"embedding": "x"}, "rag.embedding", "type"),
        (with_service("embedding", protocol="openai"), "rag.embedding.protocol", "protocol"),
        (with_service("rerank", protocol="gemini"), "rag.rerank.protocol", "protocol"),
        (with_service("rerank", json_mode="off"), "rag.rerank.json_mode", "unknown_key"),
        (with_service("generation", json_mode="yes"), "rag.generation.json_mode", "json_mode"),
        (with_service("generation", dimensions=3), "rag.generation.dimensions", "unknown_key"),
        (with_service("rerank", dimensions=3), "rag.rerank.dimensions", "unknown_key"),
        (with_service("embedding", url=None), "rag.embedding.url", "missing"),
        (with_service("embedding", api_key="sk"), "rag.embedding.api_key", "unknown_key"),
        (with_service("embedding", api_key_env="a b"), "rag.embedding.api_key_env", "env_name"),
        (
            with_service("embedding", url="http://a.example/x"),
            "rag.embedding.url",
            "https_required",
        ),
        (
            with_service("embedding", url="https://10.0.0.1/x"),
            "rag.embedding.url",
            "private_address",
        ),
        (with_service("generation", url="https://a/?k=1"), "rag.generation.url", "query_in_url"),
        (with_service("generation", url="https://a/#"), "rag.generation.url", "fragment_in_url"),
        (
            with_service("generation", url="https://u@a/"),
            "rag.generation.url",
            "credentials_in_url",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(
    rag: dict[str, object], key: str, code: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        config.read({"rag": rag}, beside=tmp_path)
    assert (refused.value.key, refused.value.code) == (key, code)


def test_private_networks_are_called_only_where_the_file_says_so(tmp_path: Path) -> None:
    rag = with_service("embedding", url="https://10.0.0.1/x")
    rag["http"] = {"allow_private_networks": True}
    assert config.read({"rag": rag}, beside=tmp_path).embedding is not None


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[rag")
    with pytest.raises(ConfigInvalid) as refused:
        config.load(tmp_path / "config.toml")
    assert refused.value.code == "malformed"


@pytest.mark.parametrize(
    ("size", "fits"),
    [
        ({"chunks": 10_000}, True),
        ({"chunks": 10_001}, False),
        ({"text_bytes": 1 << 24}, True),
        ({"text_bytes": (1 << 24) + 1}, False),
        ({"vectors": capacity.vector_bytes(10_000, 768)}, True),
        ({"vectors": capacity.vector_bytes(2_731, 3_072)}, False),
    ],
)
def test_a_vault_has_the_size_the_seed_allows(size: dict[str, int], fits: bool) -> None:
    try:
        capacity.check(**size)
        found = True
    except VaultError as error:
        found = error.code != "index_too_large"
    assert found is fits
