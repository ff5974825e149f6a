"""Where to embed and how it is asked: what all ways to ask a server share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from engine.embed.prompts import Prompts
from engine.net.strict_json import Json
from engine.types import Matrix, Purpose

BATCH_TEXTS = 32


class EmbeddingProtocol(StrEnum):
    """How a server is asked. ``azure`` is ``compatible`` with the key in a header of its own."""

    COMPATIBLE = "compatible"
    GEMINI = "gemini"
    COHERE = "cohere"
    VOYAGE = "voyage"
    JINA = "jina"
    AZURE = "azure"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to embed, with what, and as whom. The key is never shown.

    ``dimensions`` asks the server for vectors of that length. ``prompts`` None takes those that
    the model's family is known for. With ``is_operation`` the URL is called exactly as given.
    ``batch_texts`` and ``batch_tokens`` are the most that one request may hold; None is our own
    limit, or none.
    """

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    protocol: EmbeddingProtocol = EmbeddingProtocol.COMPATIBLE
    dimensions: int | None = None
    prompts: Prompts | None = None
    is_operation: bool = False
    batch_texts: int | None = None
    batch_tokens: int | None = None


class Dialect(Protocol):
    """One way to ask. ``identity`` is what, beside the URL, decides which vectors come back."""

    url: str
    headers: Mapping[str, str]
    batch_texts: int
    identity: str

    def body(self, texts: Sequence[str], purpose: Purpose) -> Mapping[str, object]:
        """The request for some texts, no more than ``batch_texts``."""
        ...

    def read(self, answer: Json, *, count: int, dim: int | None) -> Matrix:
        """Unit vectors of an answer. Raises ``EmbeddingFailed`` (``invalid_response``)."""
        ...


def bearer(key: str | None) -> dict[str, str]:
    """The header of a key as most services read it."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def batch_of(endpoint: Endpoint) -> int:
    """Texts of one request."""
    return min(BATCH_TEXTS, endpoint.batch_texts or BATCH_TEXTS)
