"""Areas that the engine answers."""

from __future__ import annotations

import re
import sqlite3
from datetime import datetime
from typing import Any

from engine import decay
from engine.errors import EngineError, InvalidQuery
from engine.keyword.fts5 import Fts5Index
from engine.keyword.limits import check_query
from engine.rank.budget import fit
from engine.rank.rrf import fuse
from engine.text.sentences import first_sentences
from engine.text.tokenize import analyzer
from engine.text.tokens import estimate_tokens
from engine.types import Match, MemoryType, Passage, PassageKind, Scope
from engine.vectors.similarity import cosine
from memory.cases.registry import Case, CaseFile, adapter


@adapter("tokens")
def tokens(case: Case, _file: CaseFile) -> int:
    """Token estimate of a text."""
    return estimate_tokens(case["input"]["text"])


@adapter("rrf")
def rrf(case: Case, _file: CaseFile) -> Any:
    """Both files' shapes: two lists of ids, or the ranks of one document."""
    asked = case["input"]
    if "bm25" in asked:
        fused = fuse([asked["bm25"], asked["vector"]], k=asked["k"])
        return {"order": [{"id": item, "score": score} for item, score in fused]}
    lists = [_ranked(name, asked[f"{name}_rank"]) for name in ("vec", "fts")]
    return dict(fuse(lists, k=asked["k"]))["wanted"]


def _ranked(name: str, rank: int | None) -> list[str]:
    return [] if rank is None else [f"{name}{i}" for i in range(1, rank)] + ["wanted"]


@adapter("budget")
def budget(case: Case, _file: CaseFile) -> list[int]:
    """Which hits go in."""
    asked = case["input"]
    return [place.index for place in fit(asked["tokens"], asked["maxTokens"])]


@adapter("summary_sentences")
def summary_sentences(case: Case, _file: CaseFile) -> str:
    """The first three sentences."""
    return first_sentences(case["input"]["text"], 3)


@adapter("cosine")
def cosine_area(case: Case, _file: CaseFile) -> dict[str, Any]:
    """Cosine, or the error's code."""
    try:
        return {"score": cosine(case["input"]["query"], case["input"]["doc"])}
    except EngineError as error:
        return {"score": f"error {error.code}"}


@adapter("match", "match_escape")
def match(case: Case, file: CaseFile) -> dict[str, Any]:
    """Terms and exact BM25 scores over the corpus of the file."""
    index, names = _corpus(file)
    query, mode = case["input"]["query"], Match(case["input"]["match_mode"])
    try:
        found = index.search(query, scope=_SCOPE, limit=100, match=mode)
    except InvalidQuery as error:
        return {"error": error.code}
    return {
        "terms": list(index.terms(query)),
        "results": [{"id": names[hit.passage_id], "bm25": hit.score} for hit in found],
    }


_SCOPE = Scope(now_ms=0, owners=frozenset({1}))


def _corpus(file: CaseFile) -> tuple[Fts5Index, dict[int, str]]:
    if "corpus" not in file.state:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        index = Fts5Index(lambda: connection, analyzer=analyzer("seed"), owns_scope=True)
        index.ensure()
        documents = file.first("bm25_corpus")["input"]["docs"]
        index.upsert([_passage(place, doc) for place, doc in enumerate(documents, start=1)])
        names = {place: doc["id"] for place, doc in enumerate(documents, start=1)}
        file.state["corpus"] = (index, names)
    found: tuple[Fts5Index, dict[int, str]] = file.state["corpus"]
    return found


def _passage(place: int, document: dict[str, str]) -> Passage:
    return Passage(
        id=place,
        kind=PassageKind.CARD,
        parent=document["id"],
        ordinal=0,
        owner=1,
        title=document["title"],
        body=document["body"],
        meta=document["metadata"],
        text_hash="",
        parent_tokens=0,
    )


@adapter("limits")
def limits(case: Case, _file: CaseFile) -> dict[str, str]:
    """Whether an explicit search is within the bounds."""
    asked = case["input"]
    mode = asked.get("mode", "hybrid")
    try:
        check_query(
            _query(asked),
            asked.get("limit", 8),
            mode,
            asked.get("match_mode", "any"),
            modes=("bm25", "vector", "hybrid"),
        )
    except InvalidQuery as error:
        return {"result": f"error {error.code}"}
    return {"result": "ok"}


def _query(asked: dict[str, Any]) -> str:
    """The query of a case; ``中 x 341 (…)`` stands for a repeated character."""
    if "query_bytes" in asked:
        return "a" * int(asked["query_bytes"])
    if "distinct_terms" in asked:
        return " ".join(f"w{i}" for i in range(asked["distinct_terms"]))
    repeated = re.fullmatch(r"(.) x (\d+) \(.*\)", asked.get("query", "word"))
    return repeated[1] * int(repeated[2]) if repeated else str(asked.get("query", "word"))


@adapter("typed_decay")
def typed_decay(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The policy of an environment, or whether a memory has decayed under the default rules."""
    asked = case["input"]
    if "env" in asked:
        policy = decay.policy_from_env(asked["env"])
        return {
            "enabled": policy.enabled,
            "ttlDaysByType": {kind.value: days for kind, days in policy.ttl_days.items()},
            "accessImmunityThreshold": policy.access_immunity,
        }
    memory = asked["memory"]
    last = memory.get("lastAccessedAt")
    row = decay.DecayRow(
        id=1,
        type=MemoryType(memory["type"]),
        created_ms=_ms(memory["createdAt"]),
        last_accessed_ms=_ms(last) if last else None,
        access_count=memory.get("accessCount", 0),
    )
    policy = decay.policy_from_env(asked.get("policy", {}))
    return {"decayed": decay.is_decayed(row, policy, _ms(asked["now"]))}


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
