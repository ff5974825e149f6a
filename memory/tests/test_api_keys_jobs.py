"""``/api/keys`` and ``/api/jobs``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory.models import ApiKey, AuditEntry, Job
from memory.principal import SCOPES
from memory.tests.asking import days_ago
from memory.tests.conftest import ApiClient, Work
from memory.tests.rest import MISSING, refusal

Api = Callable[..., Any]


@pytest.fixture
def manager(api: Api) -> Any:
    """A client that may do everything."""
    return api("manager", *SCOPES)


def _status(secret: str) -> int:
    status: int = ApiClient(secret).call("GET", "/api/memory").status_code
    return status


def test_a_new_key_shows_its_secret_once_and_works(manager: Any) -> None:
    body = {"name": "app", "scopes": ["write", "read"], "expiresAt": "2100-01-01T00:00:00Z"}
    made = manager.call("POST", "/api/keys", body).json()
    assert made["secret"].startswith("ms_")
    assert made["secret"].endswith(made["hint"])
    assert (made["name"], made["scopes"]) == ("app", ["read", "write"])
    assert (made["expiresAt"], made["revokedAt"]) == ("2100-01-01T00:00:00.000Z", None)
    assert _status(made["secret"]) == 200
    listed = manager.call("GET", "/api/keys")
    assert made["secret"] not in listed.content.decode()
    (row,) = [row for row in listed.json()["data"] if row["name"] == "app"]
    assert row["lastUsedAt"] is not None
    assert made["secret"] not in str(list(ApiKey.objects.values()))
    assert made["secret"] not in str(list(AuditEntry.objects.values()))


def test_the_list_of_keys_counts_their_live_memories(api: Api, manager: Any) -> None:
    alice = api("alice")
    for key in ("a", "b"):
        memory_id = alice.call("POST", "/api/memory", {"content": "x", "key": key}).json()["id"]
    alice.call("DELETE", f"/api/memory/{memory_id}")
    rows = {row["name"]: row for row in manager.call("GET", "/api/keys").json()["data"]}
    assert rows["alice"]["memoryCount"] == 1
    assert rows["Default"]["isDefault"] is True
    assert next(iter(rows)) == "Default"


def test_a_rotated_key_has_a_new_secret_only(manager: Any) -> None:
    made = manager.call("POST", "/api/keys", {"name": "app"}).json()
    rotated = manager.call("POST", f"/api/keys/{made['id']}/rotate").json()
    assert rotated["id"] == made["id"]
    assert (_status(made["secret"]), _status(rotated["secret"])) == (401, 200)


@pytest.mark.parametrize("by", ["id", "name", "query"])
def test_a_revoked_key_is_refused_and_its_memories_stay(manager: Any, by: str) -> None:
    made = manager.call("POST", "/api/keys", {"name": "app"}).json()
    ApiClient(made["secret"]).call("POST", "/api/memory", {"content": "kept", "key": "k"})
    if by == "query":
        answer = manager.call("DELETE", "/api/keys", id="app")
    else:
        answer = manager.call("DELETE", f"/api/keys/{made[by]}")
    assert answer.json() == {"success": True}
    refusal(ApiClient(made["secret"]).call("GET", "/api/memory"), 401, "unauthorized")
    kept = manager.call("GET", "/api/memory", apiKeyId="app").json()
    assert [row["content"] for row in kept["data"]] == ["kept"]
    again = manager.call("POST", f"/api/keys/{made['id']}/rotate").json()
    assert (again["revokedAt"], _status(again["secret"])) == (None, 200)


def test_an_expired_key_is_refused(manager: Any) -> None:
    body = {"name": "app", "expiresAt": days_ago(-1).isoformat()}
    made = manager.call("POST", "/api/keys", body).json()
    assert _status(made["secret"]) == 200
    ApiKey.objects.filter(name="app").update(expires_at=days_ago(1))
    assert _status(made["secret"]) == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "n" * 121}, "name"),
        ({"name": "a\0"}, "name"),
        ({"name": "app", "scopes": []}, "scopes"),
        ({"name": "app", "scopes": ["root"]}, "scopes.0"),
        ({"name": "app", "scopes": "read"}, "scopes"),
        ({"name": "app", "expiresAt": "soon"}, "expiresAt"),
        ({"name": "app", "expiresAt": "0001-01-01T00:00:00+14:00"}, "expiresAt"),
    ],
)
def test_a_key_that_cannot_be_is_422(manager: Any, body: dict[str, Any], field: str) -> None:
    error = refusal(manager.call("POST", "/api/keys", body), 422, "invalid")
    assert list(error["fields"]) == [field]


def test_a_name_that_is_taken_is_409(manager: Any) -> None:
    error = refusal(manager.call("POST", "/api/keys", {"name": "Default"}), 409, "conflict")
    assert list(error["fields"]) == ["name"]


@pytest.mark.parametrize("scopes", [("read", "write", "chat"), ("read",)])
def test_an_ordinary_key_manages_no_keys(api: Api, scopes: tuple[str, ...]) -> None:
    client = api("weak", *scopes)
    refusal(client.call("GET", "/api/keys"), 403, "scope_missing")
    refusal(client.call("POST", "/api/keys", {"name": "app"}), 403, "scope_missing")
    refusal(client.call("DELETE", "/api/keys", id="Default"), 403, "scope_missing")
    assert not ApiKey.objects.filter(name="app").exists()


def test_a_job_is_listed_read_cancelled_and_started_again(manager: Any, work: Work) -> None:
    manager.call("POST", "/api/memory", {"content": "likes tea", "key": "k"})
    job_id = manager.call("POST", "/api/memory/reindex").json()["jobId"]
    (listed,) = manager.call("GET", "/api/jobs").json()["data"]
    assert listed == manager.call("GET", f"/api/jobs/{job_id}").json()
    assert set(listed) == {
        "id",
        "kind",
        "state",
        "done",
        "total",
        "percent",
        "message",
        "errorCode",
        "result",
        "attempts",
        "createdAt",
        "startedAt",
        "finishedAt",
    }
    assert (listed["id"], listed["kind"], listed["state"]) == (job_id, "reindex", "queued")
    cancelled = manager.call("POST", f"/api/jobs/{job_id}/cancel").json()
    assert cancelled["state"] == "cancelled"
    refusal(manager.call("POST", f"/api/jobs/{job_id}/cancel"), 409, "job_ended")
    again = manager.call("POST", f"/api/jobs/{job_id}/retry").json()
    assert (again["id"] != job_id, again["state"]) == (True, "queued")
    work()
    done = manager.call("GET", f"/api/jobs/{again['id']}").json()
    assert (done["state"], done["percent"]) == ("succeeded", 100)
    refusal(manager.call("POST", f"/api/jobs/{again['id']}/retry"), 409, "not_failed")


@pytest.mark.parametrize("limit", [0, 201, "x"])
def test_the_list_of_jobs_has_bounds(manager: Any, limit: Any) -> None:
    error = refusal(manager.call("GET", "/api/jobs", limit=limit), 422, "invalid")
    assert list(error["fields"]) == ["limit"]


def test_the_newest_jobs_come_first(manager: Any) -> None:
    for age in (3, 1, 2):
        Job.objects.create(kind=f"age{age}", created_at=days_ago(age))
    answer = manager.call("GET", "/api/jobs", limit=2).json()
    assert [row["kind"] for row in answer["data"]] == ["age1", "age2"]


def test_jobs_of_others_are_404(api: Api) -> None:
    job = Job.objects.create(kind="reindex", created_at=days_ago(0))
    client = api("alice")
    for reference in (str(job.pk), MISSING, "nonsense"):
        refusal(client.call("GET", f"/api/jobs/{reference}"), 404, "not_found")
        refusal(client.call("POST", f"/api/jobs/{reference}/cancel"), 404, "not_found")
    assert client.call("GET", "/api/jobs").json() == {"data": []}
