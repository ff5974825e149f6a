"""MCP over standard input and output, for one client that starts this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from mcp.server.stdio import stdio_server

from memory.mcp.server import build
from memory.principal import Principal
from memory.service_threads import ServiceThreads

THREADS: Final = 4


def serve(identify: Callable[[], Principal]) -> None:
    """Speak until the client closes the input. ``identify`` is asked at every call, so that a key
    that was revoked meanwhile does nothing more."""
    asyncio.run(_serve(identify))


async def _serve(identify: Callable[[], Principal]) -> None:
    threads = ServiceThreads(THREADS, name="mcp")

    def caller(_context: Any) -> Principal:
        return identify()

    server = build(caller, threads)
    try:
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())
    finally:
        threads.close()
