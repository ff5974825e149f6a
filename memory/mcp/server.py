"""The protocol server: the SDK's low-level one over the tools."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import mcp_types as types
from django.db import DatabaseError
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from memory.errors import ServiceError
from memory.mcp.errors import safe, told
from memory.mcp.tools import INSTRUCTIONS, Call, Tool, offered, read_arguments
from memory.principal import Principal
from memory.service_threads import ServiceThreads
from memory.services import access, settings

logger = logging.getLogger("memory.mcp")

NAME: Final = "memory-studio"
VERSION: Final = "0.1.0"
LIST_IS_FRESH_MS: Final = 60_000
CODE_KEY: Final = "memory-studio/error"
"""Where the stable code of a tool error is, beside its words."""

Context = ServerRequestContext[Any, Any]
Identify = Callable[[Context], Principal]
"""Who sends a request; called in a thread. Raises ``Unauthorized``."""


def build(identify: Identify, threads: ServiceThreads) -> Server[Any]:
    """The server for callers that ``identify`` knows."""
    tools = _Tools(identify, threads)
    return Server(
        NAME,
        version=VERSION,
        title="Memory Studio",
        description="Long-term memory for LLM applications.",
        instructions=INSTRUCTIONS,
        # What is listed depends on the key.
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_IS_FRESH_MS, scope="private")},
        get_tool_input_schema=_input_schema,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )


class _Tools:
    def __init__(self, identify: Identify, threads: ServiceThreads) -> None:
        self._identify = identify
        self._threads = threads

    async def list(
        self, context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """The tools that the scopes of the caller allow."""
        return await self._threads.run(partial(self._list, context))

    async def call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run one tool; whatever goes wrong in it is a result that says so."""
        return await self._threads.run(partial(self._call, context, params))

    def _list(self, context: Context, _stop: threading.Event) -> types.ListToolsResult:
        try:
            principal = self._identify(context)
        except ServiceError as error:
            raise MCPError(types.INVALID_REQUEST, error.message) from None
        tools = offered(with_seed_names=_has_seed_names()).values()
        allowed = [described(tool) for tool in tools if principal.may(tool.scope)]
        return types.ListToolsResult(tools=allowed)

    def _call(
        self, context: Context, params: types.CallToolRequestParams, stop: threading.Event
    ) -> types.CallToolResult:
        tool = offered(with_seed_names=_has_seed_names()).get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {safe(params.name[:100])!r}.")
        try:
            principal = self._identify(context)
            access.require(principal, tool.scope)
            given = read_arguments(tool, params.arguments)
            return _result(tool.run(Call(principal, given, stop)))
        except Exception as error:
            return _failure(error)


def described(tool: Tool) -> types.Tool:
    """A tool as clients are told of it."""
    is_read = tool.scope == "read"
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=is_read,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=False,
        ),
    )


def _result(given: BaseModel) -> types.CallToolResult:
    structured = given.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=structured
    )


def _failure(error: Exception) -> types.CallToolResult:
    words = told(error)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words.message)],
        is_error=True,
        _meta={CODE_KEY: words.code},
    )


def _input_schema(name: str) -> dict[str, Any] | None:
    tool = offered(with_seed_names=True).get(name)
    return tool.input_schema if tool else None


def _has_seed_names() -> bool:
    try:
        return settings.get().mcp_seed_names
    except DatabaseError:
        return False
