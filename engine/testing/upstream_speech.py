"""What a faithful model server says: chat completions, responses, messages, models, embeddings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from engine.testing.fake_provider import Request

WORDS = ("You ", "said ", "你好", ".")
TEXT = "".join(WORDS)
MODELS = ("small", "large")
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def answer_to(request: Request) -> tuple[int, object] | list[bytes]:
    """Status and JSON, or the events of a stream."""
    path = request.path.partition("?")[0].removeprefix("/v1")
    if request.method == "GET" and path == "/models":
        rows = [{"id": one, "object": "model", "created": 1, "owned_by": "lab"} for one in MODELS]
        return 200, {"object": "list", "data": rows}
    speech = {
        "/chat/completions": _chat,
        "/responses": _responses,
        "/messages": _messages,
        "/messages/count_tokens": lambda _body: (200, {"input_tokens": 9}),
        "/embeddings": _embeddings,
    }.get(path)
    if speech is None:
        return 404, {"error": {"message": "Unknown request URL", "type": "invalid_request_error"}}
    return speech(request.json())


def _chat(body: dict[str, Any]) -> tuple[int, object] | list[bytes]:
    frame = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
    if not body.get("stream"):
        message = {"role": "assistant", "content": TEXT, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return 200, {**frame, "object": "chat.completion", "choices": [choice], "usage": USAGE}
    frame["object"] = "chat.completion.chunk"
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": word}, None) for word in WORDS]
    deltas.append(({}, "stop"))
    chunks = (
        {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in deltas
    )
    return [*_data(chunks), b"data: [DONE]\n\n"]


def _messages(body: dict[str, Any]) -> tuple[int, object] | list[bytes]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": TEXT}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 4},
    }
    if not body.get("stream"):
        return 200, message
    start = {**message, "content": [], "stop_reason": None}
    empty = {"type": "text", "text": ""}
    words = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in WORDS
    ]
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    return _named(
        [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            *words,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 4}},
            {"type": "message_stop"},
        ]
    )


def _responses(body: dict[str, Any]) -> tuple[int, object] | list[bytes]:
    part = {"type": "output_text", "text": TEXT, "annotations": []}
    item = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": body["model"],
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    if not body.get("stream"):
        return 200, whole
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}},
        *({"type": "response.output_text.delta", "delta": word, **place} for word in WORDS),
        {"type": "response.completed", "response": whole},
    ]
    return _named({**event, "sequence_number": at} for at, event in enumerate(events))


def _embeddings(body: dict[str, Any]) -> tuple[int, object]:
    given = body["input"]
    texts = given if isinstance(given, list) else [given]
    rows = [
        {"object": "embedding", "index": at, "embedding": [3.0, float(len(text)), 0.0]}
        for at, text in enumerate(texts)
    ]
    return 200, {"object": "list", "data": rows, "model": body["model"], "usage": USAGE}


def _data(events: Iterable[object]) -> list[bytes]:
    return [f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode() for event in events]


def _named(events: Iterable[dict[str, Any]]) -> list[bytes]:
    return [
        f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
        for event in events
    ]
