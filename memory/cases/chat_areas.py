"""Areas about chats that pass through the gateway."""

from __future__ import annotations

from typing import Any

from engine.chat import classic
from engine.chat.callers import wants_no_memory
from engine.chat.families import takes_system, wants_system_first
from engine.chat.inject import should_inject
from engine.chat.reading import request_text, response_text
from memory.cases.registry import Case, CaseFile, adapter


@adapter("request_text")
def request_text_area(case: Case, _file: CaseFile) -> str:
    """What the user said last."""
    return request_text(case["input"]["body"])


@adapter("response_text")
def response_text_area(case: Case, _file: CaseFile) -> str:
    """The text of a reply."""
    return response_text(case["input"]["body"])


@adapter("no_memory_header")
def no_memory_header(case: Case, _file: CaseFile) -> bool:
    """Whether a header asks for a chat without memory."""
    asked = case["input"]
    if "headers" in asked:
        return wants_no_memory(asked["headers"])
    return wants_no_memory({"X-OmniRoute-No-Memory": asked["value"]})


@adapter("provider_system_role")
def provider_system_role(case: Case, _file: CaseFile) -> bool:
    """Whether a provider takes a system message."""
    return takes_system(case["input"]["provider"])


@adapter("provider_system_first")
def provider_system_first(case: Case, _file: CaseFile) -> bool:
    """Whether a provider wants its system message first."""
    return wants_system_first(case["input"]["provider"])


@adapter("injection")
def injection(case: Case, _file: CaseFile) -> list[Any]:
    """The messages with memories in them, in the style ``classic``."""
    asked = case["input"]
    return classic.in_messages(
        asked["messages"],
        classic.context(asked["memories"]),
        provider=asked.get("provider"),
        cache_safe=bool((asked.get("options") or {}).get("cacheSafe")),
    )


@adapter("injection_gate")
def injection_gate(case: Case, _file: CaseFile) -> bool:
    """Whether a request is given memories at all."""
    asked = case["input"]
    chosen = asked.get("config") or asked.get("options") or asked
    return should_inject(asked.get("body"), enabled=bool(chosen.get("enabled", True)))
