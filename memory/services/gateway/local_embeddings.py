"""Embeddings by the studio's own source, for clients that ask for them as they ask OpenAI."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext as _

from engine.errors import EmbeddingFailed
from engine.text.tokens import estimate_tokens
from engine.types import Purpose
from memory import wiring
from memory.errors import Invalid, TierDown
from memory.services.degraded import explain

NAME: Final = "memory-studio"
"""A name for whichever source the studio embeds with."""
MAX_TEXTS: Final = 2048


@dataclass(frozen=True, slots=True)
class EmbedAsk:
    """A request as OpenAI's has it. ``is_packed``: vectors as base64 of little-endian float32."""

    model: str
    texts: tuple[str, ...]
    is_packed: bool = False
    dimensions: int | None = None
    purpose: Purpose = Purpose.DOCUMENT


def model_names() -> list[str]:
    """Names of the studio's own source; none when there is none."""
    source = wiring.resolve_source()
    if source.source is None or source.family == "remote":
        return []
    model = wiring.settings().local_model
    return [NAME, model, f"local/{model}"]


def asked(body: dict[str, Any]) -> EmbedAsk | None:
    """What a body asks of our own source; None for a model of somebody else.

    Raises ``Invalid``.
    """
    model = body.get("model")
    if not isinstance(model, str) or model not in model_names():
        return None
    encoding, dimensions = body.get("encoding_format") or "float", body.get("dimensions")
    if encoding not in ("float", "base64"):
        message = _("The encoding is float or base64.")
        raise Invalid(message, fields={"encoding_format": message})
    return EmbedAsk(
        model,
        _texts(body.get("input")),
        is_packed=encoding == "base64",
        dimensions=dimensions if isinstance(dimensions, int) else None,
        purpose=Purpose.QUERY if body.get("input_type") == "query" else Purpose.DOCUMENT,
    )


def _texts(given: object) -> tuple[str, ...]:
    texts = given if isinstance(given, list) else [given]
    found = tuple(text for text in texts if isinstance(text, str) and text)
    if not 0 < len(found) == len(texts) <= MAX_TEXTS:
        message = _("A text, or up to 2,048 texts, none of them empty.")
        raise Invalid(message, fields={"input": message})
    return found


def embed(ask: EmbedAsk) -> dict[str, Any]:
    """The answer in OpenAI's shape. Raises ``Invalid`` and ``TierDown``."""
    resolved = wiring.resolve_source()
    if resolved.source is None:
        message = explain(resolved.off) if resolved.off else _("There is no embedding source.")
        raise TierDown(message)
    try:
        vectors = resolved.source.embed(list(ask.texts), purpose=ask.purpose)
    except EmbeddingFailed as error:
        raise TierDown(str(error), code=error.code) from None
    dim = int(vectors.shape[1])
    if ask.dimensions not in (None, dim):
        message = _("This model has %(dim)s dimensions.") % {"dim": dim}
        raise Invalid(message, fields={"dimensions": message})
    tokens = sum(map(estimate_tokens, ask.texts))
    return {
        "object": "list",
        "model": ask.model,
        "data": [
            {
                "object": "embedding",
                "index": at,
                "embedding": _encoded(vector, is_packed=ask.is_packed),
            }
            for at, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _encoded(vector: Any, *, is_packed: bool) -> list[float] | str:
    if is_packed:
        return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()
    return [float(value) for value in vector]
