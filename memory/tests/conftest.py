"""People and tools of the service and API tests: alice and bob own memories, ``work`` runs jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from memory import jobs, vault_wiring, wiring
from memory.models import ApiKey, Job, Memory
from memory.principal import SYSTEM, Principal
from memory.services import keys, memories, row_cache, signin
from memory.services.drafts import MemoryDraft
from memory.tasks import HANDLERS

Remember = Callable[..., Memory]
Work = Callable[[], int]


@pytest.fixture(autouse=True)
def fresh_engine(settings: Any) -> Iterator[None]:
    """No model, index or cache survives a test."""
    settings.MEMORY_LOCAL_SOURCES = {
        "multilingual-e5-small": "memory.tests.sources.fake",
        "use-multilingual": "memory.tests.sources.fake_light",
    }
    # Tests on servers keep vaults as the only web process would.
    settings.MEMORY_STUDIO_KEEPS_VAULTS = True
    settings.MEMORY_STUDIO_VAULT_MEMORY_MIB = 19
    wiring.reset()
    vault_wiring.reset()
    cache.clear()
    row_cache.CACHE.clear()
    yield
    wiring.reset()
    vault_wiring.reset()


@pytest.fixture
def first_start(db: None) -> None:
    """The default key and the studio user."""
    signin.first_start()


def _principal(name: str, *scopes: str) -> Principal:
    _key, secret = keys.create(SYSTEM, name, scopes=scopes or ("read", "write", "chat"))
    return keys.authenticate(secret)


@pytest.fixture
def alice(first_start: None) -> Principal:
    """An ordinary key."""
    return _principal("alice")


@pytest.fixture
def bob(first_start: None) -> Principal:
    """Another ordinary key."""
    return _principal("bob")


@pytest.fixture
def manager(first_start: None) -> Principal:
    """A key that may name any owner."""
    return _principal("manager", "read", "write", "manage")


@pytest.fixture
def remember() -> Remember:
    """Store a memory: ``remember(alice, "likes tea", key="tea", expires_at=…)``."""

    def store(principal: Principal, content: str, **fields: Any) -> Memory:
        changes = {
            name: fields.pop(name) for name in ("created_at", "retained_at") if name in fields
        }
        owner = fields.pop("owner", None)
        fields.setdefault("key", f"key:{content[:60]}")
        memory, _created = memories.create(
            principal, MemoryDraft(content=content, **fields), owner=owner
        )
        if changes:
            Memory.objects.filter(pk=memory.pk).update(**changes)
            memory.refresh_from_db()
            from memory.services import passages

            passages.sync([memory])
        return memory

    return store


@pytest.fixture
def work(db: None) -> Work:
    """Run every queued job in the foreground, as a worker would; how many ran."""

    def run() -> int:
        count = 0
        while job := Job.objects.filter(state=Job.State.QUEUED).order_by("created_at").first():
            jobs.run(job.pk, HANDLERS)
            count += 1
        return count

    return run


class ApiClient:
    """A client of the REST API with a bearer secret (or none)."""

    def __init__(self, secret: str | None = None) -> None:
        self._client = Client()
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Send JSON; the answer has ``status_code`` and ``json()``."""
        content: dict[str, Any] = {"headers": self._headers}
        if body is not None:
            content |= {"data": body, "content_type": "application/json"}
        return self._client.generic(method, path, **_encoded(content), query_params=query)


def _encoded(content: dict[str, Any]) -> dict[str, Any]:
    import json

    if "data" in content and not isinstance(content["data"], str | bytes):
        content["data"] = json.dumps(content["data"])
    return content


@pytest.fixture
def api(first_start: None) -> Callable[..., ApiClient]:
    """A client for a new key: ``api("alice", "read", "write")``; without a name, no credential."""

    def make(name: str | None = None, *scopes: str) -> ApiClient:
        if name is None:
            return ApiClient()
        key = ApiKey.objects.filter(name=name).first()
        if key is not None:
            return ApiClient(keys.rotate(SYSTEM, str(key.uid))[1])
        return ApiClient(keys.create(SYSTEM, name, scopes=scopes or ("read", "write", "chat"))[1])

    return make
