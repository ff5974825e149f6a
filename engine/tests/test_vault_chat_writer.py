"""Answers of vaults from a chat service with a language of its own: what is sent, what is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.generate.chat import ChatEndpoint
from engine.net.client import HttpClient, Limits
from engine.net.policy import STRICT
from engine.testing.contracts_generate import MESSAGES
from engine.testing.fake_provider import Answer, Provider, json_answer, serving
from engine.testing.fake_writers import anthropic_messages
from engine.vault.chat_writer import MOST_TOKENS, ChatWriter
from engine.vault.errors import VaultError

KEY = "k-1"
CUT = {"content": [{"type": "text", "text": "Half of"}], "stop_reason": "max_tokens"}


@pytest.fixture
def server() -> Iterator[Provider]:
    with serving() as running:
        running.respond = anthropic_messages("Sunny.", key=KEY)
        yield running


def writer(base_url: str) -> ChatWriter:
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    endpoint = ChatEndpoint(base_url, "writer", "anthropic", headers)
    return ChatWriter(endpoint, client=HttpClient(STRICT), limits=Limits(retries=0, total_s=5))


def test_a_length_is_told_where_the_service_needs_one(server: Provider) -> None:
    one = writer(f"http://127.0.0.1:{server.port}/v1")
    assert one.generate(MESSAGES, max_tokens=0) == "Sunny."
    assert one.generate(MESSAGES, max_tokens=9) == "Sunny."
    assert [request.json()["max_tokens"] for request in server.requests] == [MOST_TOKENS, 9]
    assert (one.model, one.health().available) == ("writer", True)
    assert KEY not in repr(one.health())


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (json_answer({"content": "no list"}), "generation_invalid_response"),
        (json_answer(CUT), "generation_invalid_response"),
        (Answer(200, b"<html>"), "generation_invalid_response"),
        (Answer(401), "auth_failed"),
        (Answer(429), "rate_limited"),
        (Answer(529), "upstream_error"),
        (Answer(307, headers={"Location": "/x"}), "redirect_refused"),
        (Answer(drops=True), "upstream_error"),
    ],
)
def test_what_goes_wrong_is_told_in_the_codes_of_vaults(
    answer: Answer, code: str, server: Provider
) -> None:
    server.respond = lambda request: answer
    with pytest.raises(VaultError) as refused:
        writer(f"http://127.0.0.1:{server.port}/v1").generate(MESSAGES, max_tokens=0)
    assert refused.value.code == code


def test_the_policy_of_vaults_holds(server: Provider) -> None:
    with pytest.raises(VaultError) as refused:
        writer("http://192.168.0.9/v1").generate(MESSAGES, max_tokens=0)
    assert refused.value.code == "url_policy"
    assert server.requests == []
