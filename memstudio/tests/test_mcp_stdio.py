"""MCP over stdio: what a desktop client starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client

from memstudio.tests.mcp_client import (
    ROOT,
    environment,
    given,
    make_keys,
    manage,
    over_stdio,
    refused,
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stdio")


@pytest.fixture(scope="module")
def secrets(home: Path) -> dict[str, str]:
    manage(home, "migrate", "--verbosity", "0")
    both = ["read", "write"]
    return make_keys(home, carol=both, dave=both)


def run(home: Path, sent: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A client that writes all it has to say and closes the input."""
    return subprocess.run(
        [sys.executable, "manage.py", "mcp", *arguments],
        cwd=ROOT,
        env=environment(home),
        input=sent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_default_key_remembers_from_an_empty_home(home: Path, mode: str) -> None:
    async def talk(client: Client) -> str:
        draft = {"content": "Likes green tea", "key": f"drink:{mode}"}
        added = given(await client.call_tool("memory_add", draft))
        found = given(await client.call_tool("memory_search", {"query": "green tea"}))
        assert added["memory"]["id"] in [memory["id"] for memory in found["memories"]]
        return str(added["memory"]["apiKeyName"])

    assert over_stdio(home, talk, mode=mode) == "Default"


def test_it_speaks_as_the_key_that_is_given(home: Path, secrets: dict[str, str]) -> None:
    async def talk(client: Client) -> str:
        draft = {"content": "Rides a tandem", "key": "bike"}
        added = given(await client.call_tool("memory_add", draft))
        return str(added["memory"]["apiKeyName"])

    assert over_stdio(home, talk, "--key", "carol") == "carol"
    assert over_stdio(home, talk, MEMORY_STUDIO_KEY=secrets["carol"]) == "carol"


def test_a_key_that_is_revoked_meanwhile_does_nothing_more(
    home: Path, secrets: dict[str, str]
) -> None:
    revoke = (
        "from memory.principal import SYSTEM\nfrom memory.services import keys\n"
        "keys.revoke(SYSTEM, 'dave')"
    )

    async def talk(client: Client) -> str:
        given(await client.call_tool("memory_search", {}))
        manage(home, "shell", "--no-imports", "--command", revoke)
        return refused(await client.call_tool("memory_search", {}))

    assert over_stdio(home, talk, "--key", secrets["dave"]) == "The API key is not valid."


def test_a_wrong_key_is_one_sentence(home: Path) -> None:
    done = run(home, "", "--key", "ms_secret")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "CommandError: The API key is not valid.\n"


def test_standard_output_has_the_protocol_and_nothing_else(home: Path) -> None:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    done = run(home, f"not json\n{json.dumps(message)}\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[-1]["result"]["serverInfo"]["name"] == "memory-studio"
    assert (done.returncode, done.stderr) == (0, "")
