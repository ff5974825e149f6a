"""Areas of embedding sources and rerankers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from engine.embed import wordpiece as pieces
from engine.embed.cache import cache_key
from engine.embed.lru import CacheStats
from engine.embed.remote import EmbeddingProtocol, Endpoint, RemoteSource, endpoint_url
from engine.embed.remote_prompts import prompts_for
from engine.embed.static import Table
from engine.errors import EmbeddingFailed, EngineError, RerankFailed
from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed
from engine.rerank.light import light_score
from engine.rerank.order import reordered
from engine.rerank.remote import RemoteReranker, RerankEndpoint
from engine.testing.fake_provider import Answer, Provider, serving
from engine.types import Candidate, Passage, PassageKind, Purpose
from engine.vectors.similarity import closeness, distance
from memory.cases.registry import Case, CaseFile, adapter


@adapter("embedding_answer")
def embedding_answer(case: Case, _file: CaseFile) -> dict[str, Any]:
    """What a remote source makes of an answer, sent by a real server on loopback."""
    asked = case["input"]
    protocol = EmbeddingProtocol(asked["protocol"])
    operation = "m:embedContent" if protocol is EmbeddingProtocol.GEMINI else "embeddings"
    with serving() as provider:
        provider.respond = lambda request: _answer(asked)
        endpoint = Endpoint(
            f"http://127.0.0.1:{provider.port}/{operation}",
            "m",
            protocol=protocol,
            dimensions=asked["dimensions"],
        )
        client = HttpClient(wait=lambda seconds: None)
        source = RemoteSource(endpoint, template="", client=client)
        try:
            rows = source.embed(["text"] * asked["inputs"], purpose=Purpose.DOCUMENT)
        except EmbeddingFailed as error:
            return _failed("embedding", error, provider)
        finally:
            client.close()
    return {"vectors": [[float(value) for value in row] for row in rows]}


@adapter("rerank_answer")
def rerank_answer(case: Case, _file: CaseFile) -> dict[str, Any]:
    """What the remote reranker makes of an answer in the second seed's shape."""
    asked = case["input"]
    given = [
        (Candidate(place, place + 1, 0.0), _passage(place, text))
        for place, text in enumerate(asked["request"]["documents"])
    ]
    with serving() as provider:
        provider.respond = lambda request: _answer(asked)
        endpoint = RerankEndpoint(f"http://127.0.0.1:{provider.port}/rerank", "m")
        client = HttpClient(wait=lambda seconds: None)
        reranker = RemoteReranker(endpoint, client=client, limits=Limits())
        try:
            found = reranker.rerank("query", given)
        except RerankFailed as error:
            return _failed("rerank", error, provider)
        finally:
            client.close()
    return {"order": [candidate.passage_id for candidate in found]}


def _answer(asked: dict[str, Any]) -> Answer:
    """The answer of a case; ``raw`` is sent as it is."""
    body = asked["body"]
    raw = body["raw"] if isinstance(body, dict) and "raw" in body else json.dumps(body)
    return Answer(asked.get("status", 200), raw.encode())


def _failed(what: str, error: EngineError, provider: Provider) -> dict[str, Any]:
    code = error.code
    if code == "invalid_response":
        code = f"{what}_{code}"
    elif isinstance(error.__cause__, HttpFailed):
        code = error.__cause__.code
    return {"error": code, "retried": len(provider.requests) > 1}


def _passage(place: int, text: str) -> Passage:
    return Passage(
        id=place,
        kind=PassageKind.CARD,
        parent=str(place),
        ordinal=0,
        owner=1,
        title="",
        body=text,
        meta="",
        text_hash="",
        parent_tokens=0,
    )


@adapter("light_rerank")
def light_rerank(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The order and scores of the light reranker's formula."""
    given = case["input"]["candidates"]
    scores = [
        light_score(
            entry["rank"],
            matched=entry["matched"],
            terms=entry["terms"],
            phrase=bool(entry["phrase"]),
        )
        for entry in given
    ]
    candidates = [Candidate(place, entry["rank"], 0.0) for place, entry in enumerate(given)]
    found = reordered(candidates, scores)
    return {"order": [{"id": given[c.passage_id]["id"], "score": c.score} for c in found]}


@adapter("embed_prefix")
def embed_prefix(case: Case, _file: CaseFile) -> dict[str, str]:
    """What EmbeddingGemma reads for a text."""
    asked = case["input"]
    prompts = prompts_for("embeddinggemma")
    text = prompts.apply(asked["text"], purpose=Purpose(asked["kind"]), title=asked.get("title"))
    return {"text": text}


@adapter("embedding_cache_key")
def embedding_cache_key(case: Case, _file: CaseFile) -> str:
    """The first system's part of the key of the query cache."""
    asked = case["input"]
    return cache_key(asked["source"], asked["model"], asked["dim"], asked["text"])


@adapter("embedding_custom_endpoint")
def embedding_custom_endpoint(case: Case, _file: CaseFile) -> Any:
    """The URL of a configured endpoint, and how it signs in."""
    asked = case["input"]
    base, model, key = asked["customBaseUrl"], asked["customModelId"], asked.get("customApiKey")
    try:
        url = endpoint_url(base, model)
    except EmbeddingFailed:
        return "error"
    return None if url is None else {"url": url, "auth": "bearer" if key else "none"}


@adapter("wordpiece")
def wordpiece(case: Case, _file: CaseFile) -> list[int]:
    """Token ids of a text."""
    return pieces.token_ids(case["input"]["text"], case["input"]["vocab"])


@adapter("mean_pool")
def mean_pool(case: Case, _file: CaseFile) -> list[float]:
    """The mean vector of tokens."""
    table = Table(np.array(case["input"]["rows"], np.float32))
    return [float(value) for value in table.pool(case["input"]["ids"])]


@adapter("vector_score")
def vector_score(case: Case, _file: CaseFile) -> dict[str, float]:
    """The first system's score of two vectors."""
    apart = distance(case["input"]["stored"], case["input"]["query"])
    return {"l2": apart, "score": closeness(apart)}


@adapter("hit_rate")
def hit_rate(case: Case, _file: CaseFile) -> float:
    """The share of look-ups that found something."""
    return CacheStats(case["input"]["hits"], case["input"]["misses"], 0).hit_rate
