"""The words of each system, told in the fields of our own export."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from engine.exchange import chats
from engine.exchange.found import Choices, Found, Item, LeftOut, Place


class Dialect(StrEnum):
    """Whose words a file is in."""

    OURS = "json"
    MEM0 = "mem0"
    OPENMEMORY = "openmemory"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    MCP = "mcp"


LISTS: Final = frozenset(("", "memories", "data", "results", "items", "conversations"))
"""Names of lists that hold records; the empty one is the document itself."""
GRAPH: Final = frozenset(("entities", "relations"))
_CAMEL: Final[Mapping[str, str]] = {
    "created_at": "createdAt",
    "updated_at": "updatedAt",
    "expires_at": "expiresAt",
    "occurred_at": "occurredAt",
    "archived_at": "archivedAt",
    "session_id": "sessionId",
    "memory": "content",
}
_MEM0_KEPT: Final = ("user_id", "agent_id", "app_id", "actor_id", "role", "categories", "immutable")
_HIDDEN_STATES: Final = ("archived", "paused")

Reader = Callable[[str, Any, Place, Choices], Iterator[Item]]


def dialect_of(record: object, name: str = "") -> Dialect | None:
    """Whose words a record is in, of a list of this name; None when nothing tells."""
    if not isinstance(record, Mapping):
        return None
    if isinstance(record.get("mapping"), Mapping):
        return Dialect.CHATGPT
    if "chat_messages" in record or record.keys() & {"conversations_memory", "project_memories"}:
        return Dialect.CLAUDE
    if name in GRAPH or (record.get("type") in ("entity", "relation") and "content" not in record):
        return Dialect.MCP
    if "state" in record and record.keys() & {"categories", "category_ids"} and _is_text(record):
        return Dialect.OPENMEMORY
    if isinstance(record.get("memory"), str) and "content" not in record:
        return Dialect.MEM0
    return Dialect.OURS


def _is_text(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("content"), str)


def ours(name: str, value: Any, place: Place, _choices: Choices) -> Iterator[Item]:
    """Our own export, the first seed's, and any list of texts."""
    if name not in LISTS:
        return
    if isinstance(value, Mapping):
        named = {_CAMEL[each]: value[each] for each in _CAMEL if each in value}
        value = {**named, **value}
    yield Found(place, value)


def mem0(name: str, value: Any, place: Place, choices: Choices) -> Iterator[Item]:
    """An export of mem0, or what its ``get_all`` answers."""
    if name == "relations" and isinstance(value, Mapping):
        yield from _mem0_relation(value, place)
        return
    if name not in LISTS or not isinstance(value, Mapping):
        yield from ours(name, value, place, choices)
        return
    inner = value.get("data")
    text = value.get("memory") or (inner.get("memory") if isinstance(inner, Mapping) else None)
    metadata = value.get("metadata")
    kept = {each: value[each] for each in _MEM0_KEPT if value.get(each)}
    yield Found(
        place,
        {
            "content": text or value.get("text") or value.get("content"),
            "key": f"mem0:{value['id']}" if value.get("id") else None,
            "sessionId": value.get("run_id"),
            "metadata": {
                "source": "mem0",
                # Where the clients of mem0 find it again.
                **({"mem0": kept} if kept else {}),
                **(metadata if isinstance(metadata, Mapping) else {}),
            },
            "createdAt": value.get("created_at"),
            "occurredAt": value.get("timestamp"),
            "expiresAt": value.get("expiration_date"),
        },
    )


def _mem0_relation(value: Mapping[str, Any], place: Place) -> Iterator[Item]:
    ends = [value.get("source"), value.get("relationship"), value.get("target")]
    if all(isinstance(end, str) and end for end in ends):
        text = " ".join(str(end) for end in ends)
        metadata = {"source": "mem0", "kind": "relation"}
        yield Found(
            place, {"content": text, "key": _key("mem0:relation", text), "metadata": metadata}
        )


class OpenMemory:
    """A backup of OpenMemory; ``memories.json`` names applications and categories by ids, told
    before the memories."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, name: str, value: Any, place: Place, choices: Choices) -> Iterator[Item]:
        """The memories of its list, or of its lines."""
        if name in ("apps", "categories") and isinstance(value, Mapping):
            self._names[str(value.get("id"))] = str(value.get("name"))
        if name not in ("", "memories"):
            return
        if not isinstance(value, Mapping):
            yield from ours(name, value, place, choices)
            return
        state = value.get("state")
        if state == "deleted":
            yield LeftOut(place)
            return
        yield Found(place, self._record(value, state))

    def _record(self, value: Mapping[str, Any], state: object) -> dict[str, Any]:
        app = value.get("app") or self._names.get(str(value.get("app_id")))
        categories = value.get("categories") or [
            self._names.get(str(each), str(each)) for each in _list(value.get("category_ids"))
        ]
        metadata = value.get("metadata")
        told = {"app": app, "categories": categories, "state": state if state != "active" else None}
        archived = value.get("archived_at") or value.get("updated_at") or value.get("created_at")
        return {
            "content": value.get("content"),
            "key": f"openmemory:{value['id']}" if value.get("id") else None,
            "metadata": {
                "source": "openmemory",
                **{each: what for each, what in told.items() if what},
                **(metadata if isinstance(metadata, Mapping) else {}),
            },
            "createdAt": value.get("created_at"),
            "archivedAt": archived if state in _HIDDEN_STATES else None,
        }


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def chatgpt(name: str, value: Any, place: Place, choices: Choices) -> Iterator[Item]:
    """Conversations of ChatGPT; of its memory list, what each holds."""
    if name not in LISTS:
        return
    if isinstance(value, Mapping) and "mapping" not in value and "content" in value:
        yield from ours(name, value, place, choices)
    else:
        yield from chats.chatgpt(value, place, choices)


def claude(name: str, value: Any, place: Place, choices: Choices) -> Iterator[Item]:
    """Conversations of Claude, and what it remembers."""
    if name not in LISTS:
        return
    if isinstance(value, Mapping) and "chat_messages" not in value:
        yield from chats.claude_memory(value, place)
    else:
        yield from chats.claude(value, place, choices)


def mcp(name: str, value: Any, place: Place, choices: Choices) -> Iterator[Item]:
    """The graph of the reference server: each observation and each relation is a memory."""
    if name not in GRAPH and name not in LISTS:
        return
    if not isinstance(value, Mapping):
        yield from ours("", value, place, choices)
    elif name == "relations" or value.get("type") == "relation":
        ends = {each: str(value.get(each) or "") for each in ("from", "relationType", "to")}
        text = " ".join(ends.values()) if all(ends.values()) else ""
        yield _graph(text, {"kind": "relation", **ends}, place)
    else:
        yield from _entity(value, place)


def _entity(value: Mapping[str, Any], place: Place) -> Iterator[Item]:
    name, kind = str(value.get("name") or ""), str(value.get("entityType") or "")
    about = {"kind": "observation", "entity": name, "entityType": kind}
    head = f"{name} ({kind})" if kind else name
    seen = [each for each in _list(value.get("observations")) if isinstance(each, str) and each]
    for observation in seen:
        yield _graph(f"{head}: {observation}" if name else "", about, place)
    if not seen:
        yield _graph(head if name else "", {**about, "kind": "entity"}, place)


def _graph(text: str, metadata: Mapping[str, str], place: Place) -> Found:
    key = _key(f"mcp:{metadata['kind']}", text)
    return Found(
        place, {"content": text, "key": key, "metadata": {"source": "mcp-memory", **metadata}}
    )


def _key(prefix: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"{prefix}:{digest[:16]}"


def reader(dialect: Dialect) -> Reader:
    """What reads the records of a dialect; for one document only."""
    if dialect is Dialect.OPENMEMORY:
        return OpenMemory()
    return _READERS[dialect]


_READERS: Final[Mapping[Dialect, Reader]] = {
    Dialect.OURS: ours,
    Dialect.MEM0: mem0,
    Dialect.CHATGPT: chatgpt,
    Dialect.CLAUDE: claude,
    Dialect.MCP: mcp,
}
