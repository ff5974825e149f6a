"""Text from a generation service at a full operation URL: ``compatible`` or ``gemini``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.strict_json import Json
from engine.types import Health
from engine.vault.errors import VaultError

CODE: Final = "generation_invalid_response"
MAX_BYTES: Final = 4 << 20
CODES: Final = {
    "invalid_response": CODE,
    "response_too_large": CODE,
    "auth_failed": "auth_failed",
    "rate_limited": "rate_limited",
    "redirect_refused": "redirect_refused",
    "timeout": "timeout",
}


@dataclass(frozen=True, slots=True)
class GenerationEndpoint:
    """Where text is written, by which model, as whom. ``url`` is the operation itself.

    ``headers`` say who asks where a service reads the key from a place of its own.
    """

    url: str
    model: str
    protocol: str = "compatible"
    api_key: str | None = field(default=None, repr=False)
    json_mode: str = "off"
    headers: Mapping[str, str] | None = field(default=None, repr=False)


class RemoteGenerator:
    """``TextGenerator`` over HTTP. Offers a model no tools. Thread-safe.

    The URL policy, and what stops a retry (a vault that was locked), are those of ``client``.
    """

    def __init__(
        self, endpoint: GenerationEndpoint, *, client: HttpClient, limits: Limits | None = None
    ) -> None:
        self._endpoint = endpoint
        self._client = client
        self._limits = limits or Limits(max_bytes=MAX_BYTES)

    @property
    def model(self) -> str:
        return self._endpoint.model

    def generate(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> str:
        """What the model writes after the messages; 0 tokens leave its length to the service.

        Raises ``VaultError``: ``generation_invalid_response``, ``auth_failed``, ``rate_limited``,
        ``upstream_error``, ``redirect_refused``, ``timeout``, ``url_policy``,
        ``device_only_vault``.
        """
        return self._write(messages, max_tokens, None)

    def generate_json(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, object]
    ) -> str:
        """The same, with the service asked for JSON of a schema as far as ``json_mode`` says.

        What comes back is not checked here.
        """
        return self._write(messages, 0, schema)

    def _write(
        self,
        messages: Sequence[Mapping[str, str]],
        max_tokens: int,
        schema: Mapping[str, object] | None,
    ) -> str:
        is_gemini = self._endpoint.protocol == "gemini"
        build = self._gemini_body if is_gemini else self._body
        body = build(messages, max_tokens, schema)
        try:
            answer = self._client.post_json(
                self._endpoint.url, body, headers=self._headers(), limits=self._limits
            )
        except (UrlBlocked, HttpFailed) as error:
            raise failed(error) from error
        return _gemini_text(answer) if is_gemini else _compatible_text(answer)

    def health(self) -> Health:
        """That it is configured; asking would cost money, so nothing is asked."""
        return Health(True, detail={"model": self.model, "protocol": self._endpoint.protocol})

    def _headers(self) -> dict[str, str]:
        if self._endpoint.headers is not None:
            return dict(self._endpoint.headers)
        key = self._endpoint.api_key
        if not key:
            return {}
        if self._endpoint.protocol == "gemini":
            return {"x-goog-api-key": key}
        return {"Authorization": f"Bearer {key}"}

    def _body(
        self,
        messages: Sequence[Mapping[str, str]],
        max_tokens: int,
        schema: Mapping[str, object] | None,
    ) -> dict[str, object]:
        body: dict[str, object] = {
            "model": self._endpoint.model,
            "messages": [dict(message) for message in messages],
        }
        if max_tokens:
            body["max_tokens"] = max_tokens
        mode = self._endpoint.json_mode
        # Some servers refuse the field, or one of its kinds: nothing is sent unless asked for.
        if schema is not None and mode == "json_object":
            body["response_format"] = {"type": mode}
        elif schema is not None and mode == "json_schema":
            named = {"name": "answer", "strict": True, "schema": dict(schema)}
            body["response_format"] = {"type": mode, "json_schema": named}
        return body

    def _gemini_body(
        self,
        messages: Sequence[Mapping[str, str]],
        max_tokens: int,
        schema: Mapping[str, object] | None,
    ) -> dict[str, object]:
        config: dict[str, object] = {"responseMimeType": "application/json"}
        if schema is not None and self._endpoint.json_mode == "json_schema":
            config["responseJsonSchema"] = dict(schema)
        if max_tokens:
            config["maxOutputTokens"] = max_tokens
        return _gemini_turns(messages) | {"generationConfig": config}


def failed(error: UrlBlocked | HttpFailed, codes: Mapping[str, str] = CODES) -> VaultError:
    """The error of a vault for one of outbound HTTP; ``codes`` names those that have their own."""
    if isinstance(error, UrlBlocked):
        code = "device_only_vault" if error.reason == "not_loopback" else "url_policy"
        return VaultError(str(error), code=code, reason=error.reason)
    return VaultError(str(error), code=codes.get(error.code, "upstream_error"), reason=error.code)


def _gemini_turns(messages: Sequence[Mapping[str, str]]) -> dict[str, object]:
    rules = [{"text": message["content"]} for message in messages if message["role"] == "system"]
    turns = [
        {
            "role": "model" if message["role"] == "assistant" else "user",
            "parts": [{"text": message["content"]}],
        }
        for message in messages
        if message["role"] != "system"
    ]
    found: dict[str, object] = {"contents": turns}
    return {"systemInstruction": {"parts": rules}, **found} if rules else found


def _compatible_text(answer: Json) -> str:
    choice = _first(answer, "choices")
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    if choice.get("finish_reason") in ("length", "content_filter"):
        _refuse("an answer that was cut")
    if not isinstance(text, str):
        _refuse("no text")
    return text


def _gemini_text(answer: Json) -> str:
    candidate = _first(answer, "candidates")
    if candidate.get("finishReason", "STOP") != "STOP":
        _refuse("an answer that was cut")
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        _refuse("no text")
    return "".join(_written(parts))


def _written(parts: Sequence[Json]) -> list[str]:
    """The texts of parts, the model's thoughts left out."""
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, dict):
            _refuse("a part that is no object")
        text = part.get("text", "")
        if not isinstance(text, str):
            _refuse("a part that is no text")
        if part.get("thought") is not True:
            texts.append(text)
    return texts


def _first(answer: Json, field_name: str) -> dict[str, Json]:
    found = answer.get(field_name) if isinstance(answer, dict) else None
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        _refuse(f"no {field_name}")
    return found[0]


def _refuse(what: str) -> NoReturn:
    raise VaultError(f"The service sent {what}.", code=CODE, reason=what)
