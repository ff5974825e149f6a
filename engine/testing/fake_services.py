"""Answers of Cohere, Voyage, Jina and Azure, as they really look, with what they refuse.

Each is a ``respond`` of ``fake_provider.Provider``; vectors as in ``fake_models``.
"""

from __future__ import annotations

from engine.testing.fake_models import DIM, list_of_texts, scores, vectors
from engine.testing.fake_provider import Answer, Request, json_answer

KEY = "sk-service"
COHERE_MOST, VOYAGE_MOST = 96, 1000
COHERE_TYPES = ("search_document", "search_query", "classification", "clustering")
JINA_TASKS = ("retrieval.query", "retrieval.passage", "text-matching", "classification")


def cohere_embeddings(request: Request) -> Answer:
    """``POST /v2/embed``: needs an input type and names the types of vectors it gives."""
    if not _has_bearer(request):
        return json_answer({"id": "1", "message": "invalid api token"}, 401)
    body = request.json()
    texts = list_of_texts(body.get("texts"))
    if not texts or not body.get("model"):
        return json_answer({"id": "1", "message": "invalid request: texts are needed"}, 400)
    if len(texts) > COHERE_MOST:
        return json_answer({"id": "1", "message": "invalid request: at most 96 texts"}, 400)
    if body.get("input_type") not in COHERE_TYPES or body.get("embedding_types") != ["float"]:
        return json_answer({"id": "1", "message": "invalid request: input_type"}, 400)
    rows = vectors(texts, _dim(body.get("output_dimension")))
    meta = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 8}}
    return json_answer({"id": "1", "embeddings": {"float": rows}, "texts": texts, "meta": meta})


def voyage_embeddings(request: Request) -> Answer:
    """``POST /v1/embeddings`` of Voyage."""
    if not _has_bearer(request):
        return json_answer({"detail": "Provided API key is invalid."}, 401)
    body = request.json()
    texts = list_of_texts(body.get("input"))
    is_wrong = set(body) - {"model", "input", "input_type", "output_dimension", "truncation"}
    if is_wrong or not texts or body.get("input_type") not in (None, "query", "document"):
        return json_answer({"detail": "Request to model is invalid."}, 400)
    return _listed(body.get("model"), texts, _dim(body.get("output_dimension")))


def jina_embeddings(request: Request) -> Answer:
    """``POST /v1/embeddings`` of Jina; models before v3 know no tasks."""
    if not _has_bearer(request):
        return json_answer({"detail": "Invalid API key"}, 401)
    body = request.json()
    texts, task = list_of_texts(body.get("input")), body.get("task")
    is_old = "-v2-" in str(body.get("model"))
    if not texts or (task is not None and (is_old or task not in JINA_TASKS)):
        return json_answer({"detail": "[task] Input should be one of …"}, 422)
    return _listed(body.get("model"), texts, _dim(body.get("dimensions")))


def azure_embeddings(request: Request) -> Answer:
    """``POST /openai/v1/embeddings`` of Azure, whose key has a header of its own."""
    if request.headers.get("api-key") != KEY:
        return json_answer({"error": {"code": "401", "message": "Access denied"}}, 401)
    body = request.json()
    texts = list_of_texts(body.get("input"))
    if not texts:
        return json_answer({"error": {"code": "400", "message": "input"}}, 400)
    return _listed(body.get("model"), texts, _dim(body.get("dimensions")))


def voyage_rerank(request: Request) -> Answer:
    """``POST /v1/rerank`` of Voyage: ``top_k`` for ``top_n``, ``data`` for results."""
    if not _has_bearer(request):
        return json_answer({"detail": "Provided API key is invalid."}, 401)
    body = request.json()
    query, texts, top_k = body.get("query"), list_of_texts(body.get("documents")), body.get("top_k")
    if not (isinstance(query, str) and texts and body.get("model")) or "top_n" in body:
        return json_answer({"detail": "Request to model is invalid."}, 400)
    scored = sorted(enumerate(scores(query, texts)), key=lambda pair: -pair[1])
    data = [{"index": index, "relevance_score": score} for index, score in scored]
    kept = data[:top_k] if isinstance(top_k, int) else data
    return json_answer({"object": "list", "data": kept, "model": body["model"], "usage": {}})


def _has_bearer(request: Request) -> bool:
    return request.headers.get("authorization") == f"Bearer {KEY}"


def _dim(value: object) -> int:
    return value if isinstance(value, int) else DIM


def _listed(model: object, texts: list[str], dim: int) -> Answer:
    data = [
        {"object": "embedding", "index": index, "embedding": row}
        for index, row in enumerate(vectors(texts, dim))
    ]
    usage = {"total_tokens": 8}
    return json_answer({"object": "list", "data": data, "model": model, "usage": usage})
