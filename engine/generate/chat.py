"""Text from a chat service: OpenAI's ``/chat/completions`` or Anthropic's ``/messages``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from engine.errors import GenerationFailed
from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.strict_json import Json
from engine.types import Health

LIMITS: Final = Limits(total_s=60.0, retries=1, max_bytes=1 << 20)
_NOT_UNDERSTOOD: Final = frozenset({400, 404, 415, 422, 501})
_CUT: Final = frozenset({"length", "max_tokens", "content_filter", "refusal"})


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """Where text is written and by which model. ``base_url`` has no slash at its end; ``headers``
    hold the credential."""

    base_url: str
    model: str
    protocol: Literal["openai", "anthropic"] = "openai"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and the tokens the service says it read and wrote (0: it does not say)."""

    text: str
    tokens: int = 0


class ChatGenerator:
    """``TextGenerator`` over HTTP. Offers a model no tools. Thread-safe.

    With a ``schema`` the service is asked for JSON of that shape; one that does not know how is
    asked once more without.
    """

    def __init__(
        self,
        endpoint: ChatEndpoint,
        *,
        client: HttpClient,
        schema: Mapping[str, Any] | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self._endpoint = endpoint
        self._client = client
        self._schema = schema
        self._limits = limits

    @property
    def model(self) -> str:
        return self._endpoint.model

    def generate(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> str:
        """What the model writes after the messages. Raises ``GenerationFailed``."""
        return self.write(messages, max_tokens=max_tokens).text

    def write(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> Written:
        """The same, with what it cost."""
        try:
            answer = self._asked(messages, max_tokens)
        except (UrlBlocked, HttpFailed) as error:
            raise GenerationFailed(str(error), code=error.code) from error
        is_anthropic = self._endpoint.protocol == "anthropic"
        return (_from_anthropic if is_anthropic else _from_openai)(answer)

    def health(self) -> Health:
        """That it is configured; asking would cost money, so nothing is asked."""
        return Health(True, detail={"model": self.model, "protocol": self._endpoint.protocol})

    def _asked(self, messages: Sequence[Mapping[str, str]], max_tokens: int) -> Json:
        if self._endpoint.protocol == "anthropic":
            return self._post("/messages", _anthropic_body(messages, max_tokens))
        body: dict[str, Any] = {
            "messages": [dict(message) for message in messages],
            "max_tokens": max_tokens,
            "temperature": 0,
        }
        if self._schema is None:
            return self._post("/chat/completions", body)
        shape = {"name": "answer", "strict": True, "schema": dict(self._schema)}
        try:
            shaped = {**body, "response_format": {"type": "json_schema", "json_schema": shape}}
            return self._post("/chat/completions", shaped)
        except HttpFailed as error:
            if error.status not in _NOT_UNDERSTOOD:
                raise
            return self._post("/chat/completions", body)

    def _post(self, path: str, body: Mapping[str, Any]) -> Json:
        return self._client.post_json(
            self._endpoint.base_url + path,
            {"model": self._endpoint.model, **body},
            headers=dict(self._endpoint.headers),
            limits=self._limits,
        )


def _anthropic_body(messages: Sequence[Mapping[str, str]], max_tokens: int) -> dict[str, Any]:
    rules = "\n\n".join(each["content"] for each in messages if each["role"] == "system")
    turns = [dict(each) for each in messages if each["role"] != "system"]
    body: dict[str, Any] = {"messages": turns, "max_tokens": max_tokens, "temperature": 0}
    return {**body, "system": rules} if rules else body


def _from_openai(answer: Json) -> Written:
    choice = _first(answer, "choices")
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    counts = ("prompt_tokens", "completion_tokens")
    return _written(text, choice.get("finish_reason"), answer, counts)


def _from_anthropic(answer: Json) -> Written:
    parts = answer.get("content") if isinstance(answer, dict) else None
    texts = [
        part["text"]
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    reason = answer.get("stop_reason") if isinstance(answer, dict) else None
    text = "".join(str(text) for text in texts) if texts else None
    return _written(text, reason, answer, ("input_tokens", "output_tokens"))


def _written(text: Json, reason: Json, answer: Json, names: tuple[str, str]) -> Written:
    if not isinstance(text, str):
        raise GenerationFailed("The service sent no text.", code="invalid_response")
    if reason in _CUT:
        raise GenerationFailed("The service sent an answer that was cut.", code="cut")
    usage = answer.get("usage") if isinstance(answer, dict) else None
    counts = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return Written(text, sum(n for n in counts if isinstance(n, int) and 0 < n < 10**9))


def _first(answer: Json, name: str) -> dict[str, Json]:
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise GenerationFailed(f"The service sent no {name}.", code="invalid_response")
    return found[0]
