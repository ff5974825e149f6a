"""The routes of the REST API, and what every refusal of it looks like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

MISSING: Final = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Route:
    """One route with a body that it accepts, and the scope that it needs; ``file`` for one that
    takes or gives a file instead of JSON."""

    method: str
    path: str
    scope: str
    body: dict[str, Any] | None = None
    strict: bool = False
    required: dict[str, Any] = field(default_factory=dict)
    file: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


MEMORY: Final = f"/api/memory/{MISSING}"
VAULT: Final = f"/api/vaults/{MISSING}"
ROUTES: Final = (
    Route("GET", "/api/memory", "read"),
    Route("POST", "/api/memory", "write", {"content": "likes tea", "key": "drink"}),
    Route(
        "POST", "/api/memory/batch", "write", {"items": [{"op": "delete", "id": "x"}]}, strict=True
    ),
    Route("GET", "/api/memory/export", "read", file=True),
    Route("POST", "/api/memory/import", "write", file=True),
    Route("GET", MEMORY, "read"),
    Route("PUT", MEMORY, "write", {"content": "likes cocoa"}, strict=True),
    Route("DELETE", MEMORY, "write"),
    Route("POST", f"{MEMORY}/restore", "write", {"revision": 1}, strict=True),
    Route("GET", f"{MEMORY}/history", "read"),
    Route("POST", "/api/memory/retrieve-preview", "read", {"query": "tea"}, strict=True),
    Route("POST", "/api/memory/tokenizer-lens", "read", {"text": "tea"}, strict=True),
    Route(
        "POST", "/api/memory/why-not", "read", {"query": "tea", "memoryId": MISSING}, strict=True
    ),
    Route("POST", "/api/memory/extract", "write", {"text": "I like tea."}, strict=True),
    Route("GET", "/api/settings/extraction", "manage"),
    Route("PUT", "/api/settings/extraction", "manage", {"extractionEnabled": True}, strict=True),
    Route("GET", "/api/settings/vaults", "manage"),
    Route("PUT", "/api/settings/vaults", "manage", {"rerankProviderModel": None}, strict=True),
    Route("POST", "/api/settings/vaults/test", "manage", {"service": "rerank"}, strict=True),
    Route("GET", "/api/inbox", "read"),
    Route("POST", "/api/inbox/decisions", "write", {"action": "reject", "ids": ["x"]}, strict=True),
    Route("GET", f"/api/inbox/{MISSING}", "read"),
    Route("POST", f"/api/inbox/{MISSING}/accept", "write", {}, strict=True),
    Route("POST", f"/api/inbox/{MISSING}/reject", "write", {}, strict=True),
    Route("POST", f"/api/inbox/{MISSING}/reopen", "write", {}, strict=True),
    Route("POST", "/api/memory/reindex", "manage", {}, strict=True),
    Route("POST", "/api/memory/engine/rollback", "manage"),
    Route("DELETE", "/api/memory/engine/retired", "manage"),
    Route("POST", "/api/memory/summarize", "read", {"dryRun": True}, strict=True),
    Route("POST", f"/api/memory/summarize/{MISSING}/undo", "write"),
    Route("GET", "/api/memory/engine-status", "read"),
    Route("GET", "/api/memory/health", "read"),
    Route("GET", "/api/memory/embedding-providers", "read"),
    Route("GET", "/api/memory/backends", "manage"),
    Route("POST", f"/api/memory/backends/{MISSING}/copy", "manage"),
    Route("POST", f"/api/memory/backends/{MISSING}/pull", "manage"),
    Route("GET", "/api/settings/memory", "manage"),
    Route("PUT", "/api/settings/memory", "manage", {"enabled": True}, strict=True),
    Route("GET", "/api/settings/gateway", "manage"),
    Route("PUT", "/api/settings/gateway", "manage", {"traceText": True}, strict=True),
    Route("POST", "/api/gateway/preview", "read", {"body": {"messages": []}}, strict=True),
    Route("GET", "/api/gateway/usage", "read"),
    Route("PUT", f"/api/gateway/keys/{MISSING}", "manage", {"injection": "on"}, strict=True),
    Route("GET", "/api/traces", "read"),
    Route("GET", f"/api/traces/{MISSING}", "read"),
    Route("GET", "/api/settings/qdrant", "manage"),
    Route("PUT", "/api/settings/qdrant", "manage", {"host": "q"}, strict=True),
    Route("GET", "/api/settings/qdrant/health", "manage"),
    Route("POST", "/api/settings/qdrant/search", "manage", {"query": "tea"}, strict=True),
    Route("POST", "/api/settings/qdrant/cleanup", "manage"),
    Route("GET", "/api/settings/qdrant/embedding-models", "read"),
    Route("GET", "/api/providers", "manage"),
    Route("POST", "/api/providers", "manage", {"name": "openai", "kind": "openai"}, strict=True),
    Route("GET", "/api/providers/catalogue", "read"),
    Route("PUT", "/api/providers/order", "manage", {"ids": []}, strict=True),
    Route("GET", f"/api/providers/{MISSING}", "manage"),
    Route("PUT", f"/api/providers/{MISSING}", "manage", {"enabled": False}, strict=True),
    Route("DELETE", f"/api/providers/{MISSING}", "manage"),
    Route("POST", f"/api/providers/{MISSING}/test", "manage", {}, strict=True),
    Route("GET", "/api/keys", "manage"),
    Route("POST", "/api/keys", "manage", {"name": "app"}, strict=True),
    Route("DELETE", "/api/keys?id=alice", "manage"),
    Route("DELETE", f"/api/keys/{MISSING}", "manage"),
    Route("POST", f"/api/keys/{MISSING}/rotate", "manage"),
    Route("GET", "/api/audit", "read"),
    Route("GET", "/api/vaults", "read"),
    Route("POST", "/api/vaults", "write", {"name": "notes", "sealed": False}, strict=True),
    Route(
        "POST",
        "/api/vaults/import",
        "write",
        {"contentBase64": "YQ==", "passphrase": "x"},
        strict=True,
    ),
    Route("POST", f"{VAULT}/export", "write", {"passphrase": "x"}, strict=True),
    Route("GET", VAULT, "read"),
    Route("PUT", VAULT, "write", {"name": "other"}, strict=True),
    Route("DELETE", VAULT, "write"),
    Route("POST", f"{VAULT}/unlock", "read", {"passphrase": "x"}, strict=True),
    Route("POST", f"{VAULT}/lock", "read"),
    Route("POST", f"{VAULT}/passphrase", "write", {"newPassphrase": "x"}, strict=True),
    Route("GET", f"{VAULT}/grants", "write"),
    Route("PUT", f"{VAULT}/grants", "write", {"key": "bob"}, strict=True),
    Route("DELETE", f"{VAULT}/grants/{MISSING}", "write"),
    Route("POST", f"{VAULT}/search", "read", {"query": "tea"}, strict=True),
    Route("POST", f"{VAULT}/index", "read", {}, strict=True),
    Route("POST", f"{VAULT}/ask", "read", {"question": "tea?"}, strict=True),
    Route(
        "POST", f"{VAULT}/ingest", "write", {"name": "a.md", "contentBase64": "YQ=="}, strict=True
    ),
    Route("GET", f"{VAULT}/assets", "read"),
    Route("POST", f"{VAULT}/assets", "write", {"body": "text"}, strict=True),
    Route("GET", f"{VAULT}/assets/{MISSING}", "read"),
    Route("PUT", f"{VAULT}/assets/{MISSING}", "write", {"title": "t"}, strict=True),
    Route("DELETE", f"{VAULT}/assets/{MISSING}", "write"),
    Route("POST", f"{VAULT}/assets/{MISSING}/restore", "write"),
    Route("GET", f"{VAULT}/assets/{MISSING}/revisions", "read"),
    Route("GET", "/api/jobs", "read"),
    Route("GET", f"/api/jobs/{MISSING}", "read"),
    Route("POST", f"/api/jobs/{MISSING}/cancel", "read"),
    Route("POST", f"/api/jobs/{MISSING}/retry", "read"),
    Route("GET", "/api/webhooks", "read"),
    Route(
        "POST", "/api/webhooks", "write", {"name": "app", "url": "https://a.example/"}, strict=True
    ),
    Route("GET", f"/api/webhooks/{MISSING}", "read"),
    Route("PUT", f"/api/webhooks/{MISSING}", "write", {"enabled": False}, strict=True),
    Route("DELETE", f"/api/webhooks/{MISSING}", "write"),
    Route("POST", f"/api/webhooks/{MISSING}/rotate", "write"),
    Route("POST", f"/api/webhooks/{MISSING}/test", "read"),
    Route("GET", f"/api/webhooks/{MISSING}/deliveries", "read"),
    Route("POST", f"/api/webhooks/deliveries/{MISSING}/redeliver", "write"),
)
WITH_BODY: Final = tuple(route for route in ROUTES if route.body is not None)


def refusal(response: Any, status: int, code: str) -> dict[str, Any]:
    """The error of a refusal, after checking that it has the one shape."""
    assert response.status_code == status, response.content
    document = response.json()
    assert list(document) == ["error"]
    error: dict[str, Any] = document["error"]
    assert (
        {"code", "message", "requestId"}
        <= set(error)
        <= {
            "code",
            "message",
            "fields",
            "requestId",
        }
    )
    assert error["code"] == code
    assert isinstance(error["message"], str)
    assert error["message"]
    assert "Traceback" not in response.content.decode()
    assert error["requestId"] == response["X-Request-Id"]
    for name, problem in error.get("fields", {}).items():
        assert isinstance(name, str)
        assert isinstance(problem, str)
    return error
