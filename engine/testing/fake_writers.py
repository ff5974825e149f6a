"""Answers of services that write, in the languages of OpenAI, Gemini and Anthropic.

Each is a maker of a ``respond`` of ``fake_provider.Provider``; a request that the real service
would refuse is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.testing.fake_models import google_error
from engine.testing.fake_provider import Answer, Request, json_answer

Respond = Callable[[Request], Answer]
ROLES = {"system", "user", "assistant"}


def openai_chat(content: str, *, key: str = "", header: str = "authorization") -> Respond:
    """``POST …/chat/completions``; ``key`` is what the header has to say."""

    def respond(request: Request) -> Answer:
        body = request.json()
        if key and request.headers.get(header) != key:
            return json_answer({"error": {"message": "No.", "code": "invalid_api_key"}}, 401)
        if not (request.path.endswith("/chat/completions") and body.get("model") and _turns(body)):
            return json_answer({"error": {"message": "No.", "type": "invalid_request_error"}}, 400)
        choice = {"index": 0, "message": {"role": "assistant", "content": content}}
        choice |= {"finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        return json_answer({"object": "chat.completion", "choices": [choice], "usage": usage})

    return respond


def gemini_generate(content: str) -> Respond:
    """``POST models/…:generateContent``."""

    def respond(request: Request) -> Answer:
        if not request.headers.get("x-goog-api-key"):
            return google_error(403, "PERMISSION_DENIED")
        body = request.json()
        known = {"contents", "systemInstruction", "generationConfig"}
        if not request.path.endswith(":generateContent") or set(body) - known:
            return google_error(400)
        if not body.get("contents"):
            return google_error(400)
        parts = [{"text": content}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        return json_answer({"candidates": [candidate], "usageMetadata": {"totalTokenCount": 18}})

    return respond


def anthropic_messages(content: str, *, key: str) -> Respond:
    """``POST …/messages``: needs its own headers, and a length."""

    def respond(request: Request) -> Answer:
        body = request.json()
        if request.headers.get("x-api-key") != key:
            return json_answer({"type": "error", "error": {"type": "authentication_error"}}, 401)
        is_whole = body.get("model") and body.get("max_tokens") and _turns(body)
        if not request.headers.get("anthropic-version") or not is_whole:
            return json_answer({"type": "error", "error": {"type": "invalid_request_error"}}, 400)
        usage = {"input_tokens": 9, "output_tokens": 9}
        parts = [{"type": "text", "text": content}]
        return json_answer(
            {"type": "message", "content": parts, "stop_reason": "end_turn", "usage": usage}
        )

    return respond


def _turns(body: dict[str, object]) -> bool:
    turns = body.get("messages")
    return (
        isinstance(turns, list)
        and bool(turns)
        and all(isinstance(turn, dict) and turn.get("role") in ROLES for turn in turns)
    )
