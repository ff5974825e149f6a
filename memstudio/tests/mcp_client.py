"""A served studio with keys, and the SDK's own client against it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from memory.tests.own_stack import DROPPED
from memstudio.tests.test_studio import Studio, free_port

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")
Talk = Callable[[Client], Awaitable[T]]

_MAKE_KEYS = """
import json
from memory.principal import SYSTEM
from memory.services import keys
wanted = json.loads({wanted!r})
print(json.dumps({{name: keys.create(SYSTEM, name, scopes=wanted[name])[1] for name in wanted}}))
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a process that works on a home, with everything in that home."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return {**kept, "MEMORY_STUDIO_HOME": str(home), **more}


@contextmanager
def serving(home: Path) -> Iterator[Studio]:
    """A studio that serves a home, with everything in that home."""
    with pytest.MonkeyPatch.context() as patch:
        for name in DROPPED:
            patch.delenv(name, raising=False)
        studio = Studio(home, free_port())
    try:
        studio.wait_until_up()
        yield studio
    finally:
        studio.process.kill()
        studio.end()


def manage(home: Path, *arguments: str) -> str:
    """Run a management command; what it printed."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_keys(home: Path, **scopes: list[str]) -> dict[str, str]:
    """The secrets of new keys with these names and scopes."""
    script = _MAKE_KEYS.format(wanted=json.dumps(scopes))
    made = manage(home, "shell", "--no-imports", "--command", script)
    secrets: dict[str, str] = json.loads(made)
    return secrets


def over_http(url: str, secret: str, talk: Talk[T], mode: str = "auto") -> T:
    """Talk to ``/mcp`` as a key; ``mode`` ``legacy`` is the protocol with a handshake."""

    async def run() -> T:
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                return await talk(client)

    return asyncio.run(run())


def over_stdio(home: Path, talk: Talk[T], *arguments: str, mode: str = "auto", **more: str) -> T:
    """Talk to ``manage.py mcp`` in a process of its own."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["manage.py", "mcp", *arguments],
        cwd=ROOT,
        env=environment(home, **more),
    )

    async def run() -> T:
        async with Client(parameters, mode=mode) as client:
            return await talk(client)

    return asyncio.run(run())


def given(result: CallToolResult) -> dict[str, Any]:
    """The structured result of a call that worked."""
    assert not result.is_error, result.content
    structured: dict[str, Any] = result.structured_content
    return structured


def refused(result: CallToolResult) -> str:
    """The words of a call that did not work."""
    assert result.is_error
    [words] = result.content
    assert isinstance(words, TextContent)
    return words.text
