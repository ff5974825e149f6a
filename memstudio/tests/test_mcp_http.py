"""MCP over HTTP: the SDK's own client, unchanged, against a served studio."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from hypothesis import given as having
from hypothesis import settings
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from memory.mcp.tools import TOOLS
from memstudio.tests.mcp_client import given, make_keys, over_http, refused, serving
from memstudio.tests.test_studio import Studio

READS = {"memory_search", "memory_read", "memory_why", "memory_retrieve", "memory_ask"}
WRITES = {"memory_add", "memory_update", "memory_delete", "memory_clear"}
DESTROYS = {"memory_update", "memory_delete", "memory_clear"}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True)
class World:
    """A studio and the secrets of its keys."""

    studio: Studio
    secrets: dict[str, str]
    http: httpx2.Client

    @property
    def alice(self) -> str:
        """The secret of a key that may read and write."""
        return self.secrets["alice"]

    @property
    def bob(self) -> str:
        """The secret of another one."""
        return self.secrets["bob"]

    @property
    def url(self) -> str:
        """Where it serves."""
        return self.studio.url

    def switch_seed_names(self, is_on: bool) -> None:
        """Change the setting."""
        key = {"Authorization": f"Bearer {self.secrets['chief']}"}
        changes = {"mcpSeedNames": is_on}
        self.http.put("/api/settings/memory", json=changes, headers=key).raise_for_status()

    def post(self, body: Any, secret: str = "", **headers: str) -> httpx2.Response:
        """One bare request."""
        key = {"Authorization": f"Bearer {secret}"} if secret else {}
        content = json.dumps(body).encode()
        return self.http.post("/mcp", content=content, headers={**JSON, **key, **headers})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(tmp_path_factory.mktemp("mcp")) as studio:
        both = ["read", "write"]
        secrets = make_keys(studio.home, alice=both, bob=both, reader=["read"], chief=["manage"])
        with httpx2.Client(base_url=studio.url, timeout=30) as http:
            yield World(studio, secrets, http)
        code, said = studio.stop(signal.SIGINT)
        assert (code, said) == (0, "")


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """The body of a tool call."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_learns_what_the_tools_do(world: World, mode: str) -> None:
    async def talk(client: Client) -> tuple[Any, Any]:
        return client.instructions, (await client.list_tools()).tools

    instructions, tools = over_http(world.url, world.alice, talk, mode)
    assert "memory_search" in instructions
    assert {tool.name for tool in tools} == READS | WRITES
    for tool in tools:
        assert tool.title
        assert tool.description
        assert tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.read_only_hint is (tool.name in READS)
        assert tool.annotations.destructive_hint is (tool.name in DESTROYS)
        assert tool.annotations.open_world_hint is False


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_memory_lives_from_its_first_word_to_the_trash(world: World, mode: str) -> None:
    async def talk(client: Client) -> None:
        draft = {"content": "Reads in 京都", "key": f"place:{mode}", "metadata": {"a": None}}
        added = given(await client.call_tool("memory_add", draft))
        assert (added["created"], added["message"]) == (True, "Memory created successfully")
        one = {"id": added["memory"]["id"]}
        found = given(await client.call_tool("memory_search", {"query": "京都", "limit": 5}))
        assert one["id"] in [memory["id"] for memory in found["memories"]]
        changes = {**one, "content": "Reads in Nara", "expiresAt": "2090-01-01T00:00:00Z"}
        given(await client.call_tool("memory_update", changes))
        again = given(await client.call_tool("memory_read", one))["memory"]
        assert (again["content"], again["revision"]) == ("Reads in Nara", 2)
        assert again["expiresAt"] == "2090-01-01T00:00:00.000Z"
        assert again["metadata"] == {"a": None}
        asked = {"memoryId": one["id"], "query": "bicycle", "strategy": "exact"}
        why = given(await client.call_tool("memory_why", asked))
        assert (why["found"], why["reason"]) == (False, "no_words")
        given(await client.call_tool("memory_delete", one))
        assert refused(await client.call_tool("memory_read", one)) == "No such memory."

    over_http(world.url, world.alice, talk, mode)


def test_keys_do_not_see_each_other(world: World) -> None:
    async def add(client: Client) -> str:
        draft = {"content": "alice keeps a parrot", "key": "pet:parrot"}
        added = given(await client.call_tool("memory_add", draft))
        return str(added["memory"]["id"])

    memory_id = over_http(world.url, world.alice, add)

    async def pry(client: Client) -> None:
        asked = {"query": "parrot", "apiKeyId": "alice"}
        assert given(await client.call_tool("memory_search", asked))["count"] == 0
        for name in ("memory_read", "memory_delete", "memory_update"):
            assert refused(await client.call_tool(name, {"id": memory_id})) == "No such memory."
        asked = {"memoryId": memory_id, "query": "parrot"}
        assert refused(await client.call_tool("memory_why", asked)) == "No such memory."
        words = refused(await client.call_tool("memory_clear", {"apiKeyId": "alice"}))
        assert words == "This key may only write its own memories."
        given(await client.call_tool("memory_clear", {}))

    over_http(world.url, world.bob, pry)

    async def look(client: Client) -> int:
        found = given(await client.call_tool("memory_search", {"query": "parrot"}))
        return int(found["count"])

    assert over_http(world.url, world.alice, look) == 1


def test_a_key_that_may_only_read_is_offered_only_reading(world: World) -> None:
    async def talk(client: Client) -> tuple[set[str], str]:
        names = {tool.name for tool in (await client.list_tools()).tools}
        return names, refused(await client.call_tool("memory_clear", {}))

    names, words = over_http(world.url, world.secrets["reader"], talk)
    assert names == READS
    assert words == "This needs the scope “write”."


def test_the_names_of_the_first_seed_answer_when_they_are_switched_on(world: World) -> None:
    async def names(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    assert over_http(world.url, world.bob, names) == READS | WRITES
    world.switch_seed_names(True)

    async def talk(client: Client) -> None:
        draft = {"type": "factual", "key": "k", "content": "c"}
        added = given(await client.call_tool("omniroute_memory_add", draft))
        assert added["success"] is True
        assert added["data"]["message"] == "Memory created successfully"
        found = given(await client.call_tool("omniroute_memory_search", {"query": "c"}))
        assert found["data"]["count"] == 1
        cleared = given(await client.call_tool("omniroute_memory_clear", {}))
        assert cleared["data"] == {"deletedCount": 1, "message": "Cleared 1 memories"}

    over_http(world.url, world.bob, talk)
    world.switch_seed_names(False)
    assert over_http(world.url, world.bob, names) == READS | WRITES


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(world: World) -> None:
    async def talk(client: Client) -> None:
        with pytest.raises(MCPError, match="There is no tool 'memory_guess'"):
            await client.call_tool("memory_guess", {})

    over_http(world.url, world.alice, talk)


def test_a_request_needs_no_session_so_any_process_can_answer_it(world: World) -> None:
    answer = world.post(call("memory_search", query="tea"), world.alice)
    assert answer.status_code == 200
    assert '"isError":false' in answer.text
    assert "mcp-session-id" not in answer.headers


def test_who_has_no_valid_key_is_told_so_before_anything_else(world: World) -> None:
    for secret in ("", "ms_wrong"):
        answer = world.post(call("memory_search"), secret)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "API key" in answer.json()["error"]["message"]


def test_foreign_hosts_and_origins_are_refused(world: World) -> None:
    body = call("memory_search")
    assert world.post(body, world.alice, Host="evil.example").status_code == 421
    for origin in ("http://evil.example", "null", "file://x", "http://[", "ftp://localhost"):
        assert world.post(body, world.alice, Origin=origin).status_code == 403, origin
    assert world.post(body, world.alice, Origin=world.url).status_code == 200


def test_other_methods_and_large_bodies_are_refused(world: World) -> None:
    for method in ("GET", "DELETE", "PUT"):
        answer = world.http.request(method, "/mcp")
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    large = world.post(call("memory_add", key="k", content="a" * 5_000_000), world.alice)
    assert large.status_code == 413


TEXTS = ["", " ", "\0", "\ud800", "a" * 3000, "0001-01-01T00:00:00+14:00", "2026-02-30"]
NUMBERS = [10**400, -1, 0, 1.5, 1e308, float("nan"), float("inf")]
ODD = st.sampled_from(TEXTS) | st.sampled_from(NUMBERS) | st.booleans() | st.none()
VALUES = st.recursive(
    ODD | st.text(max_size=10) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["\ud800", *(name for tool in TOOLS for name in tool.input_schema["properties"])]
)
BODIES = st.builds(
    lambda name, arguments: {**call("memory_search"), "params": {"name": name, **arguments}},
    st.sampled_from(sorted(READS | WRITES)),
    st.fixed_dictionaries({"arguments": st.dictionaries(NAMES, VALUES, max_size=6) | VALUES}),
)


@settings(max_examples=150, deadline=None)
@having(body=BODIES | VALUES)
def test_nothing_that_a_client_sends_gives_a_500(world: World, body: Any) -> None:
    answer = world.post(body, world.bob)
    assert answer.status_code in (200, 202, 400)
    assert "Traceback" not in answer.text
    assert "internal" not in answer.text
