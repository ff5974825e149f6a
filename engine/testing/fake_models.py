"""Answers of model servers, as they really look: embeddings and reranking, with their faults.

Each is a ``respond`` of ``fake_provider.Provider``. Vectors are those of ``FakeEmbedding``, three
times as long, so that who forgets to normalise is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.testing.fake_provider import Answer, Request, json_answer
from engine.testing.fakes import FakeEmbedding
from engine.types import Purpose

DIM = 64
Respond = Callable[[Request], Answer]


def openai_embeddings(request: Request) -> Answer:
    """``POST /v1/embeddings``; the items come in reverse order."""
    body = request.json()
    texts, dim = list_of_texts(body.get("input")), body.get("dimensions", DIM)
    if not (texts and isinstance(dim, int) and body.get("model")):
        return _openai_error(400, "invalid_request_error")
    data = [
        {"object": "embedding", "index": index, "embedding": row}
        for index, row in enumerate(vectors(texts, dim))
    ]
    usage = {"prompt_tokens": 8, "total_tokens": 8}
    return json_answer(
        {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}
    )


def gemini_embeddings(request: Request) -> Answer:
    """``models/…:embedContent`` and ``models/…:batchEmbedContents``, by the path."""
    if not request.headers.get("x-goog-api-key"):
        return google_error(403, "PERMISSION_DENIED")
    body = request.json()
    if request.path.endswith(":embedContent"):
        vector = _gemini_vector(body)
        return google_error(400) if vector is None else json_answer({"embedding": vector})
    asked = body.get("requests")
    vectors = [_gemini_vector(one) for one in asked] if isinstance(asked, list) else []
    if not vectors or None in vectors or not request.path.endswith(":batchEmbedContents"):
        return google_error(400)
    return json_answer({"embeddings": vectors})


def google_error(status: int, name: str = "INVALID_ARGUMENT", **detail: str) -> Answer:
    """A refusal of Google's APIs: ``reason`` for a bad key, ``retryDelay`` for a used-up quota."""
    kind = "RetryInfo" if "retryDelay" in detail else "ErrorInfo"
    details = [{"@type": f"type.googleapis.com/google.rpc.{kind}", **detail}] if detail else []
    return json_answer(
        {"error": {"code": status, "message": "No.", "status": name, "details": details}}, status
    )


def cohere_rerank(request: Request) -> Answer:
    """``POST /v1/rerank`` of Cohere, Jina and the second seed: sorted, cut to ``top_n``."""
    body = request.json()
    query, texts, top_n = body.get("query"), list_of_texts(body.get("documents")), body.get("top_n")
    if not (isinstance(query, str) and texts and body.get("model")):
        return json_answer({"message": "invalid request"}, 400)
    scored = sorted(enumerate(scores(query, texts)), key=lambda pair: -pair[1])
    results = [{"index": index, "relevance_score": score} for index, score in scored]
    kept = results[:top_n] if isinstance(top_n, int) else results
    return json_answer({"id": "1", "model": body["model"], "results": kept, "meta": {}})


def tei_rerank(request: Request) -> Answer:
    """``POST /rerank`` of Text Embeddings Inference: a bare list, at most 32 texts."""
    body = request.json()
    query, texts = body.get("query"), list_of_texts(body.get("texts"))
    if not (isinstance(query, str) and texts):
        return json_answer({"error": "bad input", "error_type": "Validation"}, 422)
    if len(texts) > 32:
        return json_answer({"error": "batch size > 32", "error_type": "Validation"}, 413)
    scored = sorted(enumerate(scores(query, texts)), key=lambda pair: -pair[1])
    return json_answer([{"index": index, "score": score} for index, score in scored])


def _openai_error(status: int, kind: str) -> Answer:
    return json_answer({"error": {"message": "No.", "type": kind, "code": None}}, status)


def _gemini_vector(body: object) -> dict[str, list[float]] | None:
    if not isinstance(body, dict) or not str(body.get("model", "")).startswith("models/"):
        return None
    match body.get("content"):
        case {"parts": [{"text": str(text)}]} if text:
            return {"values": vectors([text], int(body.get("outputDimensionality", DIM)))[0]}
    return None


def list_of_texts(value: object) -> list[str]:
    """A list of texts; empty when it is none, or when one is no text or empty."""
    texts = value if isinstance(value, list) else []
    return texts if all(isinstance(text, str) and text for text in texts) else []


def vectors(texts: Sequence[str], dim: int) -> list[list[float]]:
    rows = FakeEmbedding(dim=dim).embed(texts, purpose=Purpose.DOCUMENT)
    return [[3.0 * float(value) for value in row] for row in rows]


def scores(query: str, texts: Sequence[str]) -> list[float]:
    rows = FakeEmbedding(dim=256).embed([query, *texts], purpose=Purpose.DOCUMENT)
    return [float(row @ rows[0]) for row in rows[1:]]
