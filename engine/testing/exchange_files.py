"""Small files of the systems that are imported from, made up for the tests."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

from engine.exchange.found import Found, Item
from engine.exchange.read import Format, Reading

MOMENT = 1_746_360_000.25
"""4 May 2025, 12:00:00.25 UTC, as ChatGPT writes times."""


def reading(data: str | bytes, name: str = "", **options: Any) -> Reading:
    """A file as it is read."""
    raw = data.encode() if isinstance(data, str) else data
    return Reading(io.BytesIO(raw), name, **options)


def items(data: str | bytes, name: str = "", **options: Any) -> list[Item]:
    """Everything in a file."""
    return list(reading(data, name, **options).items())


def records(data: str | bytes, name: str = "", **options: Any) -> list[Any]:
    """The records in a file."""
    return [item.record for item in items(data, name, **options) if isinstance(item, Found)]


def format_of(data: str | bytes, name: str = "") -> Format:
    """What a file turns out to be."""
    return reading(data, name).format


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """An archive of files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


def message(role: str, parts: Iterable[Any], **fields: Any) -> dict[str, Any]:
    """A message of ChatGPT."""
    content = {"content_type": fields.pop("kind", "text"), "parts": list(parts)}
    named = {"id": fields.pop("id", f"m-{role}"), "author": {"role": role}, "content": content}
    return {**named, "create_time": MOMENT, **fields}


def chatgpt() -> list[dict[str, Any]]:
    """A conversation in which the first question was asked again: its first wording leads
    nowhere."""
    nodes: dict[str, Any] = {
        "root": {"id": "root", "message": None, "parent": None},
        "system": {"id": "system", "message": message("system", [""]), "parent": "root"},
        "old": {"message": message("user", ["I like te"], id="m-old"), "parent": "system"},
        "ask": {"message": message("user", ["I like green tea"], id="m-ask"), "parent": "system"},
        "hidden": {
            "message": message(
                "user", ["profile"], metadata={"is_visually_hidden_from_conversation": True}
            ),
            "parent": "ask",
        },
        "tool": {"message": message("tool", ["42"]), "parent": "hidden"},
        "answer": {"message": message("assistant", ["Noted."], id="m-answer"), "parent": "tool"},
        "picture": {
            "message": message(
                "user",
                [
                    {"content_type": "image_asset_pointer", "asset_pointer": "x"},
                    "Here is my cup",
                    {"content_type": "audio_transcription", "text": "and a word"},
                ],
                id="m-picture",
                kind="multimodal_text",
            ),
            "parent": "answer",
        },
    }
    return [
        {
            "id": "c-1",
            "conversation_id": "c-1",
            "title": "About tea",
            "create_time": MOMENT,
            "current_node": "picture",
            "mapping": nodes,
        }
    ]


def claude() -> list[dict[str, Any]]:
    """A conversation of Claude."""
    return [
        {
            "uuid": "c-2",
            "name": "Trip",
            "created_at": "2025-05-04T12:00:00.000000Z",
            "chat_messages": [
                {
                    "uuid": "m-1",
                    "sender": "human",
                    "text": "shorter",
                    "content": [{"type": "text", "text": "I moved to Lisbon"}],
                    "created_at": "2025-05-04T12:01:02.345678Z",
                },
                {"uuid": "m-2", "sender": "assistant", "text": "Welcome!", "content": []},
                {"uuid": "m-3", "sender": "human", "text": "Thanks", "content": []},
                {"uuid": "m-4", "sender": "human", "text": " ", "content": []},
            ],
        }
    ]


def claude_memory() -> list[dict[str, Any]]:
    """What Claude remembers."""
    text = "Lives in Lisbon.\n\n**Work**\n\nWrites maps.\n\n- likes ink\n\n# Work\nPaints."
    return [{"conversations_memory": text, "project_memories": {"p-1": "Map of tea houses"}}]


def openmemory() -> bytes:
    """A backup: the same memories twice, as a document and as lines."""
    apps = [{"id": "a-1", "name": "editor"}]
    categories = [{"id": "k-1", "name": "food"}]
    common = {
        "id": "1",
        "content": "Likes tea",
        "metadata": {"a": 1},
        "created_at": "2025-05-04T12:00:00+00:00",
        "updated_at": "2025-05-05T12:00:00+00:00",
    }
    document = {
        "user": {"user_id": "ann"},
        "apps": apps,
        "categories": categories,
        "memories": [
            {**common, "app_id": "a-1", "category_ids": ["k-1"], "state": "active"},
            {**common, "id": "2", "state": "archived", "category_ids": []},
            {**common, "id": "3", "state": "deleted", "category_ids": []},
        ],
    }
    lines = [
        {**common, "app": "editor", "categories": ["food"], "state": "active"},
        {**common, "id": "2", "app": None, "categories": [], "state": "paused"},
        {**common, "id": "3", "app": None, "categories": [], "state": "deleted"},
    ]
    packed = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    return zipped({"memories.json": json.dumps(document, indent=2), "memories.jsonl.gz": packed})


def mem0() -> dict[str, Any]:
    """What ``get_all`` of mem0 answers."""
    return {
        "count": 1,
        "results": [
            {
                "id": "m-1",
                "memory": "Likes tea",
                "user_id": "ann",
                "run_id": "r-1",
                "metadata": {"a": 1},
                "categories": ["food"],
                "created_at": "2025-05-04T05:00:00.123456-07:00",
                "expiration_date": "2100-01-02",
            }
        ],
    }


def graph() -> str:
    """The file of the MCP reference server."""
    lines = [
        {
            "type": "entity",
            "name": "Ann",
            "entityType": "person",
            "observations": ["likes tea", "paints"],
        },
        {"type": "entity", "name": "Lisbon", "entityType": "city", "observations": []},
        {"type": "relation", "from": "Ann", "relationType": "lives in", "to": "Lisbon"},
    ]
    return "\n".join(map(json.dumps, lines))
