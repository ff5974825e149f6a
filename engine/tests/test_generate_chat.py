"""Text from a chat service: both shapes, strict JSON asked for, and services that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import pytest

from engine.errors import GenerationFailed
from engine.generate.chat import ChatEndpoint, ChatGenerator
from engine.net.client import HttpClient, Limits
from engine.testing.contracts_generate import MESSAGES, TextGeneratorContract
from engine.testing.fake_upstream import FakeUpstream, Reply, json_reply, serving_models
from engine.testing.upstream_speech import TEXT

QUICK = Limits(connect_s=2.0, total_s=2.0, retries=0)
SCHEMA = {"type": "object", "properties": {}}


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    """A model server."""
    with serving_models() as server:
        yield server


Build = Callable[..., ChatGenerator]


@pytest.fixture
def build(upstream: FakeUpstream) -> Iterator[Build]:
    """Makes generators that ask the server."""
    client = HttpClient(wait=lambda seconds: None)

    def made(
        protocol: Literal["openai", "anthropic"] = "openai",
        schema: Mapping[str, object] | None = None,
    ) -> ChatGenerator:
        headers = {"Authorization": "Bearer k"}
        endpoint = ChatEndpoint(upstream.url, "small", protocol, headers)
        return ChatGenerator(endpoint, client=client, schema=schema, limits=QUICK)

    yield made
    client.close()


class TestContract(TextGeneratorContract):
    """The seam's contract, over OpenAI's shape."""

    @pytest.fixture
    def generator(self, build: Build) -> ChatGenerator:
        """One whose service works."""
        return build()

    @pytest.fixture
    def broken(self, build: Build, upstream: FakeUpstream) -> ChatGenerator:
        """One whose service answers something else."""
        upstream.respond = lambda _request: json_reply({"choices": []})
        return build()


class TestContractOfMessages(TestContract):
    """The same, over Anthropic's shape."""

    @pytest.fixture
    def generator(self, build: Build) -> ChatGenerator:
        """One whose service works."""
        return build("anthropic")

    @pytest.fixture
    def broken(self, build: Build, upstream: FakeUpstream) -> ChatGenerator:
        """One whose service answers something else."""
        upstream.respond = lambda _request: json_reply({"content": "no list"})
        return build("anthropic")


def test_the_text_and_its_cost_are_the_services(build: Build, upstream: FakeUpstream) -> None:
    written = build().write(MESSAGES, max_tokens=20)
    assert (written.text, written.tokens) == (TEXT, 13)
    assert upstream.requests[-1].headers["authorization"] == "Bearer k"


def test_a_schema_is_asked_for_strictly(build: Build, upstream: FakeUpstream) -> None:
    build(schema=SCHEMA).generate(MESSAGES, max_tokens=20)
    shape = upstream.last["response_format"]
    assert (shape["type"], shape["json_schema"]["strict"]) == ("json_schema", True)


def test_a_service_that_knows_no_schema_is_asked_without(
    build: Build, upstream: FakeUpstream
) -> None:
    upstream.script = [json_reply({"error": {"message": "unknown field"}}, 400)]
    assert build(schema=SCHEMA).generate(MESSAGES, max_tokens=20) == TEXT
    assert "response_format" not in upstream.last


def test_system_messages_stand_apart_for_anthropic(build: Build, upstream: FakeUpstream) -> None:
    build("anthropic").generate(MESSAGES, max_tokens=20)
    assert upstream.last["system"] == MESSAGES[0]["content"]
    assert [one["role"] for one in upstream.last["messages"]] == ["user"]


@pytest.mark.parametrize(
    "reply",
    [
        json_reply({"choices": [{"message": {"content": "a"}, "finish_reason": "length"}]}),
        json_reply({"choices": [{"message": {"content": None}}]}),
        json_reply(["no object"]),
        Reply(200, b"not json"),
        Reply(200, b"x" * (2 << 20)),
        json_reply({"error": "no"}, 401),
        json_reply({"error": "no"}, 500),
        Reply(200, b"{}", dies_after=0),
        Reply(302, b"", headers={"Location": "http://127.0.0.1:1/"}),
    ],
)
def test_trouble_is_told_without_the_body(
    build: Build, upstream: FakeUpstream, reply: Reply
) -> None:
    upstream.respond = lambda _request: reply
    with pytest.raises(GenerationFailed) as caught:
        build().generate(MESSAGES, max_tokens=20)
    assert "127.0.0.1" not in str(caught.value)
