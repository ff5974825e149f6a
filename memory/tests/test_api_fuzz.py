"""Nothing that a client sends ever gives a 500, and every refusal has the one shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.models import Vault, VaultAsset
from memory.principal import SCOPES
from memory.tests.conftest import ApiClient
from memory.tests.rest import MISSING, ROUTES, VAULT, WITH_BODY, Route, refusal

ODD = st.sampled_from(
    [
        "",
        " ",
        "\0",
        "\ud800",
        "a" * 3000,
        "Default",
        "manager",
        "true",
        "null",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-02-30",
        10**400,
        -1,
        0,
        1.5,
        1e308,
        float("nan"),
        float("inf"),
        True,
        None,
    ]
)
LEAVES = ODD | st.text(max_size=10) | st.integers() | st.floats()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS: dict[str, list[str]] = {
    "/api/memory": [
        "content",
        "key",
        "type",
        "sessionId",
        "apiKeyId",
        "metadata",
        "expiresAt",
        "occurredAt",
        "pinned",
        "shared",
    ],
    "/api/memory/batch": ["items"],
    f"/api/memory/{MISSING}": ["content", "key", "metadata", "expiresAt", "revision", "sessionId"],
    f"/api/memory/{MISSING}/restore": ["revision"],
    "/api/memory/tokenizer-lens": ["text", "purpose"],
    "/api/memory/why-not": ["query", "memoryId", "strategy", "limit", "match", "scope"],
    "/api/memory/retrieve-preview": [
        "query",
        "strategy",
        "maxTokens",
        "limit",
        "apiKeyId",
        "sessionId",
        "scope",
        "types",
        "trace",
        "filters",
    ],
    "/api/memory/extract": ["text", "role", "sessionId", "apiKeyId", "dryRun", "injected"],
    "/api/settings/extraction": ["extractionModel", "extractionDailyTokens", "extractFromReplies"],
    "/api/settings/vaults": [
        "embeddingProviderModel",
        "embeddingDimensions",
        "generationProviderModel",
        "generationJsonMode",
        "rerankProviderModel",
        "revision",
    ],
    "/api/settings/vaults/test": ["service"],
    "/api/inbox/decisions": ["action", "ids"],
    f"/api/inbox/{MISSING}/accept": ["content", "type", "revision"],
    f"/api/inbox/{MISSING}/reject": ["revision"],
    f"/api/inbox/{MISSING}/reopen": ["revision"],
    "/api/memory/reindex": ["force"],
    "/api/memory/summarize": [
        "mode",
        "olderThanDays",
        "maxTokens",
        "apiKeyId",
        "allOwners",
        "sessionId",
        "dryRun",
    ],
    "/api/settings/memory": [
        "maxTokens",
        "retentionDays",
        "embeddingProviderModel",
        "primaryBackend",
        "fallbackBackends",
        "backendConfigs",
        "customModelId",
        "customApiKey",
        "retentionDaysByType",
        "localModel",
        "fusionWeights",
        "rerankBaseUrl",
        "rerankApiKey",
        "recencyWeight",
        "relevanceFloor",
    ],
    "/api/settings/qdrant": ["enabled", "host", "port", "collection", "apiKey"],
    "/api/settings/qdrant/search": ["query", "topK"],
    "/api/keys": ["name", "scopes", "expiresAt"],
    "/api/providers": ["name", "kind", "baseUrl", "protocol", "apiKey", "apiKeyEnv", "models"],
    "/api/providers/order": ["ids"],
    f"/api/providers/{MISSING}": ["name", "kind", "baseUrl", "models", "enabled", "revision"],
    f"/api/providers/{MISSING}/test": ["model"],
    "/api/webhooks": ["name", "url", "events", "apiKeyId", "allOwners", "includeContent"],
    f"/api/webhooks/{MISSING}": ["name", "url", "events", "enabled"],
    "/api/vaults": ["name", "sealed", "passphrase", "deviceOnly", "autoLockMinutes", "apiKeyId"],
    "/api/vaults/import": ["contentBase64", "passphrase", "into", "name", "sealed"],
    f"{VAULT}/export": ["passphrase"],
    f"{VAULT}/index": ["budgetSeconds"],
    VAULT: ["name", "deviceOnly", "autoLockMinutes", "embeddingModel", "embeddingDim"],
    f"{VAULT}/unlock": ["passphrase", "recoveryKey"],
    f"{VAULT}/passphrase": ["passphrase", "recoveryKey", "newPassphrase"],
    f"{VAULT}/grants": ["key", "role", "expiresAt"],
    f"{VAULT}/search": ["query", "mode", "matchMode", "limit", "cardsOnly", "rerank", "grouped"],
    f"{VAULT}/ask": ["question", "mode", "matchMode", "limit", "cardsOnly", "rerank"],
    f"{VAULT}/ingest": ["name", "title", "contentBase64"],
    f"{VAULT}/assets": ["body", "title", "kind", "meta", "source"],
    f"{VAULT}/assets/{MISSING}": ["body", "title", "meta"],
    "/api/settings/gateway": ["injectionEnabled", "injectionStyle", "injectionBudgetMs"],
    "/api/gateway/preview": ["body", "protocol", "apiKeyId", "headers", "assumeOn"],
    f"/api/gateway/keys/{MISSING}": ["injection", "dailyTokens"],
}
BOUNDED = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def client(api: Any) -> ApiClient:
    """A client with every scope, and a memory of its own."""
    made: ApiClient = api("manager", *SCOPES)
    made.call("POST", "/api/memory", {"content": "likes tea", "key": "k", "sessionId": "s"})
    made.call("POST", "/api/vaults", {"name": "notes", "sealed": False})
    vault = Vault.objects.get()
    # The one that the routes of the tests name.
    Vault.objects.update(uid=MISSING)
    asset = {"id": MISSING, "created_at": vault.created_at, "updated_at": vault.created_at}
    VaultAsset.objects.create(vault=vault, title="t", body="likes tea", **asset)
    return made


def _check(response: Any) -> None:
    if response.status_code == 200:
        json.loads(response.content)
    else:
        refusal(response, response.status_code, response.json()["error"]["code"])
        assert response.status_code in (400, 401, 403, 404, 405, 409, 413, 422, 503)


@pytest.mark.parametrize("route", WITH_BODY, ids=str)
@BOUNDED
@given(data=st.data())
def test_no_body_gives_a_500(client: ApiClient, route: Route, data: st.DataObject) -> None:
    names = st.sampled_from(FIELDS[route.path])
    body = data.draw(st.dictionaries(names, VALUES, max_size=4))
    if data.draw(st.booleans()):
        body = {**(route.body or {}), **body}
    _check(client.call(route.method, route.path, json.dumps(body)))


@pytest.mark.parametrize("route", WITH_BODY, ids=str)
@BOUNDED
@given(body=st.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_give_a_500(client: ApiClient, route: Route, body: bytes) -> None:
    _check(client.call(route.method, route.path, body))


@BOUNDED
@given(
    query=st.dictionaries(
        st.sampled_from(
            ["apiKeyId", "type", "sessionId", "q", "state", "limit", "page", "offset", "x"]
        ),
        st.text(st.characters(codec="utf-8"), max_size=12)
        | st.integers().map(str)
        | st.sampled_from(["Default", "manager", "all", "trash", "hidden", "50", "%", "\0"]),
        max_size=4,
    )
)
def test_no_query_gives_a_500(client: ApiClient, query: dict[str, str]) -> None:
    _check(client.call("GET", "/api/memory", **query))
    _check(client.call("GET", "/api/jobs", **query))
    _check(client.call("GET", "/api/audit", **query))


@BOUNDED
@given(
    route=st.sampled_from([route for route in ROUTES if MISSING in route.path]),
    reference=st.text(st.characters(codec="utf-8", exclude_characters="?#"), max_size=20)
    | st.sampled_from(["%00", "%ff", "..", "manager", "Default", "{}", "urn:uuid:" + MISSING]),
)
def test_no_reference_gives_a_500(client: ApiClient, route: Route, reference: str) -> None:
    path = route.path.replace(MISSING, reference)
    if path.startswith("//"):
        path = route.path
    _check(client.call(route.method, path, route.body))
