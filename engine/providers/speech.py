"""How services are spoken to: one table of protocols with what each can do, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ANTHROPIC_VERSION: Final = "2023-06-01"


class ProviderProtocol(StrEnum):
    """The language of a service as a whole. ``openai`` is that of every compatible server."""

    OPENAI = "openai"
    AZURE = "azure"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    COHERE = "cohere"
    VOYAGE = "voyage"
    JINA = "jina"
    TEI = "tei"


class ChatProtocol(StrEnum):
    """What a chat request looks like: ``/chat/completions`` or Anthropic's ``/messages``."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class Speech:
    """What one protocol can do.

    ``chat_path``, ``embedding_path`` and ``rerank_path`` go between the base URL and the path of
    the operation. ``embedding`` and ``rerank`` are values of ``EmbeddingProtocol`` and
    ``RerankProtocol``; None where the service has no such thing.
    """

    chat: ChatProtocol | None = None
    chat_path: str = ""
    key_header: str = "Authorization"
    embedding: str | None = None
    embedding_path: str = ""
    rerank: str | None = None
    rerank_path: str = ""


SPEECH: Final[Mapping[ProviderProtocol, Speech]] = {
    ProviderProtocol.OPENAI: Speech(ChatProtocol.OPENAI, embedding="compatible", rerank="cohere"),
    ProviderProtocol.AZURE: Speech(
        ChatProtocol.OPENAI, key_header="api-key", embedding="azure", rerank=None
    ),
    ProviderProtocol.ANTHROPIC: Speech(ChatProtocol.ANTHROPIC, key_header="x-api-key"),
    ProviderProtocol.GEMINI: Speech(ChatProtocol.OPENAI, chat_path="/openai", embedding="gemini"),
    ProviderProtocol.COHERE: Speech(
        ChatProtocol.OPENAI,
        chat_path="/compatibility/v1",
        embedding="cohere",
        rerank="cohere",
        rerank_path="/v2/rerank",
    ),
    ProviderProtocol.VOYAGE: Speech(embedding="voyage", rerank="voyage"),
    ProviderProtocol.JINA: Speech(embedding="jina", rerank="jina"),
    ProviderProtocol.TEI: Speech(embedding="compatible", embedding_path="/v1", rerank="tei"),
}


def chat_url(base_url: str, protocol: ProviderProtocol) -> str | None:
    """The base URL of chat requests, without a slash at its end; None without chat."""
    speech = SPEECH[protocol]
    return base_url.rstrip("/") + speech.chat_path if speech.chat is not None else None


def chat_headers(protocol: ProviderProtocol, key: str) -> dict[str, str]:
    """What a chat request says of who asks."""
    headers: dict[str, str] = {}
    speech = SPEECH[protocol]
    if key:
        is_bearer = speech.key_header == "Authorization"
        headers[speech.key_header] = f"Bearer {key}" if is_bearer else key
    if speech.chat is ChatProtocol.ANTHROPIC:
        headers["anthropic-version"] = ANTHROPIC_VERSION
    return headers
