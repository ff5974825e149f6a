"""What a studio holds when the run begins: memories in every state, a job, a compaction, keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx

from benchmarks.contract.callers import Callers

OWNERS: Final = 4
MEMORIES: Final = 60
EACH: Final = 8
NOWHERE: Final = "http://127.0.0.1:9/v1"
"""An address on this machine where nothing listens."""

TYPES: Final = ("factual", "episodic", "procedural", "semantic")


def fill(keeper: httpx.Client) -> dict[str, list[str]]:
    """Store it all; the ids that paths may name, by the parameter."""
    callers, compactions = Callers(keeper), []
    with httpx.Client(base_url=keeper.base_url, timeout=60) as client:
        for _owner in range(OWNERS):
            client.headers["Authorization"] = f"Bearer {callers.next()}"
            compactions += _own(client)
    keeper.post("/api/memory/reindex", json={"force": True}).raise_for_status()
    silent = {"brain": {"baseUrl": NOWHERE, "allowLoopback": True}}
    keeper.put("/api/settings/memory", json={"backendConfigs": silent}).raise_for_status()
    memories = keeper.get("/api/memory", params={"state": "all", "limit": 200}).json()["data"]
    return {
        "memory_id": [row["id"] for row in memories],
        "job_id": [row["id"] for row in keeper.get("/api/jobs").json()["data"]],
        "compaction_id": compactions,
        "backend_id": ["brain", "sqlite"],
        "provider_id": _made(keeper, "/api/providers", {"kind": "vllm", "baseUrl": NOWHERE}),
        "webhook_id": _made(keeper, "/api/webhooks", {"url": NOWHERE, "allOwners": True}),
    }


def _made(keeper: httpx.Client, path: str, body: dict[str, Any]) -> list[str]:
    """Ids of several, since a run deletes some."""
    answers = [keeper.post(path, json={"name": f"lab-{n}", **body}) for n in range(EACH)]
    return [str(answer.raise_for_status().json()["id"]) for answer in answers]


def _own(client: httpx.Client) -> list[str]:
    """What one owner has; the ids of its compactions. A key that may only read has nothing."""
    answer = client.post(
        "/api/memory/batch", json={"items": [_create(number) for number in range(MEMORIES)]}
    )
    if answer.status_code == 403:
        return []
    ids = [result["id"] for result in answer.raise_for_status().json()["results"]]
    changes = [
        *({"op": "update", "id": ids[n], "changes": {"content": f"was {n}"}} for n in range(5)),
        *({"op": "delete", "id": ids[n]} for n in range(5, 10)),
    ]
    client.post("/api/memory/batch", json={"items": changes}).raise_for_status()
    done = client.post("/api/memory/summarize", json={"mode": "tokens", "maxTokens": 400})
    return [summary["compactionId"] for summary in done.raise_for_status().json()["summaries"]]


def _create(number: int) -> dict[str, Any]:
    memory: dict[str, Any] = {
        "key": f"fact:{number}",
        "content": f"Fact {number}. Likes tea and trains. Lives by the sea. 喜欢茶。 お茶が好き。",
        "type": TYPES[number % 4],
        "sessionId": f"s{number % 3}",
        "metadata": {"number": number, "tags": ["a", "b"], "project": {"stage": "beta"}},
        "pinned": number % 10 == 0,
    }
    if number % 7 == 0:
        memory["expiresAt"] = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    return {"op": "create", "memory": memory}
