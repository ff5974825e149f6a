"""The adapters of the engine's areas, on cases of our own."""

from __future__ import annotations

from typing import Any

import pytest

import memory.cases.runner  # noqa: F401  (registers the adapters)
from memory.cases.registry import CaseFile, adapter_for

INVALID = {"error": "rerank_invalid_response", "retried": False}


def answer(area: str, asked: dict[str, Any], **case: Any) -> Any:
    adapter = adapter_for(area)
    assert adapter is not None
    return adapter({"id": "x", "area": area, "input": asked, **case}, CaseFile([]))


@pytest.mark.parametrize(
    ("retries", "answers", "wanted"),
    [
        (0, [503], {"attempts": 1, "result": "error"}),
        (5, [503, 429, 500, 502, 504, 200], {"attempts": 6, "result": "ok"}),
        (2, ["read_timeout", 200], {"attempts": 2, "result": "ok"}),
        (2, ["connect_error"] * 3, {"attempts": 3, "result": "error"}),
        (2, ["certificate_error", 200], {"attempts": 1, "result": "error"}),
        (2, [302, 200], {"attempts": 1, "result": "error"}),
        (2, ["200 invalid JSON", 200], {"attempts": 1, "result": "error"}),
        (2, [503, 503, "grant revoked during the wait"], {"attempts": 2, "result": "cancelled"}),
        (6, [], {"result": "config error retries_out_of_range"}),
    ],
)
def test_retry_sequences_run_against_a_real_server(
    retries: int, answers: list[Any], wanted: dict[str, Any]
) -> None:
    assert answer("retry_sequence", {"retries": retries, "answers": answers}) == wanted


@pytest.mark.parametrize(
    ("area", "asked", "wanted"),
    [
        (
            "device_only",
            {"url": "https://api.example.com/x", "vault": "device_only"},
            {"accept": False, "reason": "device_only_vault"},
        ),
        (
            "url_policy_dns",
            {"url": "https://localhost/x", "dns": ["::1"]},
            {"accept": True, "loopback": True},
        ),
        ("outbound_url", {"url": "http://10.0.0.1/", "policy": "block-metadata"}, {"ok": True}),
        (
            "outbound_url",
            {"url": "http://10.0.0.1/"},
            {"block-metadata": "ALLOWED", "public-only": "BLOCKED"},
        ),
        ("url_host_class", {"host": "192.168.0.1"}, {"private": True, "metadata": False}),
        ("proxy_route", {"url": "https://h/", "env": {"ALL_PROXY": "q:2"}}, {"via": "http://q:2"}),
        ("http_status", {"status": 502}, {"retried": True, "error": "upstream_error"}),
        (
            "retry_delay",
            {"retry_index": 1, "backoff_ms": 250, "retry_after": None},
            {"delay_ms": 500},
        ),
        ("hit_rate", {"hits": 1, "misses": 3}, 0.25),
        ("wordpiece", {"vocab": {"[UNK]": 0, "un": 4, "##real": 5}, "text": "Unreal"}, [4, 5]),
        ("mean_pool", {"ids": [1], "rows": [[0.0, 0.0], [1.0, 0.5]]}, [1.0, 0.5]),
        ("vector_score", {"stored": [3, 4], "query": [0, 0]}, {"l2": 5.0, "score": 1 / 6}),
        (
            "embed_prefix",
            {"kind": "query", "text": "tea"},
            {"text": "task: search result | query: tea"},
        ),
        (
            "embedding_custom_endpoint",
            {"customBaseUrl": "http://h/v1", "customModelId": "m", "customApiKey": "k"},
            {"url": "http://h/v1/embeddings", "auth": "bearer"},
        ),
    ],
)
def test_an_area_is_answered(area: str, asked: dict[str, Any], wanted: Any) -> None:
    assert answer(area, asked) == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            {"results": [{"index": 1, "relevance_score": 2}, {"index": 0, "relevance_score": 1}]},
            {"order": [1, 0]},
        ),
        ({"raw": "<html>"}, INVALID),
        ({"raw": '{"results":[{"index":0,"relevance_score":1e999}]}'}, INVALID),
        ({"results": [{"index": 0, "relevance_score": 1}]}, INVALID),
    ],
)
def test_rerank_answers_come_from_a_real_server(body: dict[str, Any], wanted: Any) -> None:
    assert answer("rerank_answer", {"request": {"documents": ["a", "b"]}, "body": body}) == wanted


def test_a_status_is_told_with_whether_it_was_tried_again() -> None:
    asked = {"request": {"documents": ["a"]}, "body": {}, "status": 503}
    assert answer("rerank_answer", asked) == {"error": "upstream_error", "retried": True}


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("compatible", {"data": [{"index": 0, "embedding": [3, 4]}]}),
        ("gemini", {"embedding": {"values": [3, 4]}}),
    ],
)
def test_embedding_answers_come_from_a_real_server(protocol: str, body: Any) -> None:
    asked = {"protocol": protocol, "inputs": 1, "dimensions": 2, "body": body}
    assert answer("embedding_answer", asked)["vectors"][0] == pytest.approx([0.6, 0.8])
    asked["dimensions"] = 3
    wanted = {"error": "embedding_invalid_response", "retried": False}
    assert answer("embedding_answer", asked) == wanted


def test_a_backend_on_this_machine_is_an_exception_that_an_operator_makes() -> None:
    ours = {"allowed": False, "unless": "the operator says so"}
    found = answer("generic_backend_ssrf", {"baseUrl": "http://localhost:1"}, ours=ours)
    assert found == ours
    blocked = answer("generic_backend_ssrf", {"baseUrl": "http://169.254.169.254"}, ours=ours)
    assert blocked == {"allowed": False}
