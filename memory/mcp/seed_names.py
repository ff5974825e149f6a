"""The first seed's three tools under their own names, answering in its shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from memory.mcp import results, tools
from memory.mcp.shapes import Result


class SeedFound(Result):
    """``{success, data: {memories, count, totalTokens}}``."""

    success: bool = True
    data: results.Found


class SeedAdded(Result):
    """``{success, data: {memory, message}}``."""

    success: bool = True
    data: results.Added


class SeedCleared(Result):
    """``{success, data: {deletedCount, message}}``."""

    success: bool = True
    data: results.Cleared


def _search(call: tools.Call) -> SeedFound:
    return SeedFound(data=tools.search(call))


def _add(call: tools.Call) -> SeedAdded:
    return SeedAdded(data=tools.add(call))


def _clear(call: tools.Call) -> SeedCleared:
    return SeedCleared(data=tools.clear(call))


_OURS: Final = {tool.name: tool for tool in tools.TOOLS}
SEED_TOOLS: Final = (
    replace(_OURS["memory_search"], name="omniroute_memory_search", gives=SeedFound, run=_search),
    replace(_OURS["memory_add"], name="omniroute_memory_add", gives=SeedAdded, run=_add),
    replace(_OURS["memory_clear"], name="omniroute_memory_clear", gives=SeedCleared, run=_clear),
)
