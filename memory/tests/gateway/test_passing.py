"""Chats that pass through unchanged, and what stands in their way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.providers.spec import ProviderSpec
from engine.testing.fake_upstream import Reply
from engine.testing.upstream_speech import TEXT, answer_to
from memory.principal import SYSTEM
from memory.services import keys, providers
from memory.tests.gateway.conftest import CHAT, World, user

pytestmark = pytest.mark.django_db(transaction=True)

BODIES: dict[str, dict[str, Any]] = {
    CHAT: user("hi", temperature=0.10),
    "/v1/responses": {"model": "small", "input": "hi"},
    "/v1/messages": {**user("hi"), "model": "lab/small", "max_tokens": 5},
}


@pytest.mark.parametrize("path", [CHAT, "/v1/responses"])
@pytest.mark.parametrize("stream", [True, False])
def test_bytes_pass_through_unchanged_both_ways(world: World, path: str, stream: bool) -> None:
    raw = json.dumps({**BODIES[path], "stream": stream}, indent=3).encode()
    answered = world.say(path, raw, content_type="application/json")
    (request,) = world.upstream.requests
    assert (request.path, request.body) == (path, raw)
    told = answer_to(request)
    whole = b"".join(told) if isinstance(told, list) else json.dumps(told[1]).encode()
    assert (answered.status, answered.body, answered.is_whole) == (200, whole, True)
    assert len(answered.pieces) == (len(told) if isinstance(told, list) else 1)


def test_headers_travel_but_for_our_own_and_those_of_the_connection(world: World) -> None:
    world.upstream.script = [Reply(201, b"{}", headers={"X-Req": "1", "Set-Cookie": "c"})]
    answered = world.say(
        CHAT, user("hi"), openai_beta="x", x_session_id="s", cookie="c", accept_encoding="gzip"
    )
    sent = world.upstream.requests[0].headers
    assert sent["openai-beta"] == "x"
    assert sent["authorization"] == "Bearer up-key"
    assert sent["accept-encoding"] == "identity"
    assert not {"x-session-id", "cookie", "x-api-key"} & set(sent)
    assert (answered.status, answered.headers["x-req"]) == (201, "1")
    assert "set-cookie" not in answered.headers


def test_anthropic_is_asked_as_its_own_clients_do(world: World) -> None:
    spec = ProviderSpec("claude", "anthropic", base_url=world.upstream.url, api_key="ant")
    providers.create(SYSTEM, spec)
    body = {**user("hi"), "model": "claude-x", "max_tokens": 5, "stream": True}
    answered = world.say(
        "/v1/messages?beta=true", body, x_api_key=world.secret, anthropic_version="2024-01-01"
    )
    (request,) = world.upstream.requests
    assert request.path == "/v1/messages?beta=true"
    assert (request.headers["x-api-key"], "authorization" in request.headers) == ("ant", False)
    assert request.headers["anthropic-version"] == "2024-01-01"
    assert answered.body.startswith(b"event: message_start")
    counted = world.say("/v1/messages/count_tokens", body, x_api_key=world.secret)
    assert counted.json() == {"input_tokens": 9}
    assert world.upstream.requests[1].headers["anthropic-version"] == "2023-06-01"


def test_a_provider_before_the_slash_is_taken_off_the_model(world: World) -> None:
    assert world.say("/v1/messages", BODIES["/v1/messages"]).status == 200
    assert world.upstream.last == {**BODIES["/v1/messages"], "model": "small"}


def test_an_error_of_the_upstream_is_passed_on_whole(world: World) -> None:
    error = {"error": {"message": "slow down", "type": "rate_limit", "code": None}}
    world.upstream.script = [
        Reply(429, json.dumps(error).encode(), headers={"Retry-After": "7", "X-Odd": "y"})
    ]
    answered = world.say(CHAT, user("hi"))
    assert (answered.status, answered.json()) == (429, error)
    assert (answered.headers["retry-after"], answered.headers["x-odd"]) == ("7", "y")
    assert world.receipt().outcome == "refused"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"authorization": "Bearer ms_wrong"}, 401, "unauthorized"),
        ({"authorization": ""}, 401, "invalid_api_key"),
        ({"host": "evil.example"}, 421, "foreign_host"),
        ({"content_encoding": "gzip"}, 415, "unsupported_encoding"),
    ],
)
def test_who_may_not_chat_is_told_in_the_shape_of_the_protocol(
    world: World, headers: dict[str, str], status: int, code: str
) -> None:
    answered = world.say(CHAT, user("hi"), **headers)
    assert (answered.status, answered.error["code"]) == (status, code)
    assert set(answered.error) == {"message", "type", "param", "code"}
    anthropic = world.say("/v1/messages", user("hi"), **headers)
    assert (anthropic.status, anthropic.json()["type"]) == (status, "error")
    assert set(anthropic.error) == {"type", "message"}
    assert world.upstream.requests == []


def test_of_two_credentials_the_one_that_is_ours_counts(world: World) -> None:
    other = {"authorization": "Bearer sk-of-somebody-else", "x_api_key": world.secret}
    assert world.say(CHAT, user("hi"), **other).status == 200
    assert "sk-of-somebody-else" not in str(world.upstream.requests[0].headers)
    swapped = {"authorization": f"Bearer {world.secret}", "x_api_key": "sk-of-somebody-else"}
    assert world.say(CHAT, user("hi"), **swapped).status == 200


def test_a_key_needs_the_scope_chat(world: World) -> None:
    _key, secret = keys.create(SYSTEM, "reader", scopes=("read", "write"))
    answered = world.say(CHAT, user("hi"), authorization=f"Bearer {secret}")
    assert (answered.status, answered.error["type"]) == (403, "permission_error")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b'{"a": NaN}',
        b'{"model": "lab/small", "n": 1e999}',
        b"\xff",
        b'{"a":' * 100_000,
    ],
)
def test_a_body_that_is_no_object_is_refused(world: World, raw: bytes) -> None:
    for path in (CHAT, "/v1/embeddings", "/v1/messages/count_tokens"):
        answered = world.say(path, raw)
        assert (answered.status, answered.error.get("code", "invalid_json")) == (
            400,
            "invalid_json",
        )


@pytest.mark.parametrize("model", [None, "", 7, ["small"]])
def test_a_body_without_a_model_is_refused(world: World, model: Any) -> None:
    answered = world.say(CHAT, {**user("hi"), "model": model})
    assert (answered.status, answered.error["code"]) == (400, "model_missing")


def test_a_body_over_the_limit_is_refused(world: World, settings: Any) -> None:
    settings.MEMORY_STUDIO_MAX_BODY_BYTES = 1024
    assert world.say(CHAT, user("x" * 2000)).status == 413
    assert world.say(CHAT, user("x" * 2000), content_length="").status == 413


def test_a_model_that_nobody_has_is_not_found(world: World) -> None:
    providers.update(SYSTEM, "lab", {"models": ("only-*",)})
    answered = world.say(CHAT, user("hi"))
    assert (answered.status, answered.error["code"]) == (404, "unknown_model")
    assert answered.headers["x-memory-injected"] == "0"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", CHAT, 405),
        ("POST", "/v1/models", 405),
        ("POST", "/v1/none", 404),
        ("GET", "/v1", 404),
    ],
)
def test_other_paths_and_methods_are_refused(
    world: World, method: str, path: str, status: int
) -> None:
    answered = world.say(path, method=method)
    assert answered.status == status
    assert ("allow" in answered.headers) == (status == 405)


def test_the_next_provider_is_asked_when_one_cannot_be_reached(world: World) -> None:
    providers.create(SYSTEM, ProviderSpec("down", base_url="http://127.0.0.1:9/v1"))
    providers.reorder(SYSTEM, ["down", "lab"])
    answered = world.say(CHAT, user("hi"))
    assert answered.json()["choices"][0]["message"]["content"] == TEXT
    assert world.receipt().provider == "lab"
    assert world.say("/v1/embeddings", {"model": "m", "input": "x"}).status == 200


def test_an_upstream_that_cannot_be_reached_is_a_bad_gateway(world: World) -> None:
    providers.update(SYSTEM, "lab", {"base_url": "http://127.0.0.1:9/v1"})
    answered = world.say(CHAT, user("hi"))
    assert (answered.status, answered.error["code"]) == (502, "upstream_connect_failed")
    assert "lab" in answered.error["message"]
    assert (world.receipt().status, world.receipt().outcome) == (502, "unreached")
