"""``/api/webhooks``: made, listed, changed, tested, read back; and only by whom it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory import secretbox
from memory.models import AuditEntry, Webhook
from memory.principal import SCOPES
from memory.services.webhooks import hooks
from memory.tests.conftest import Work
from memory.tests.receiver import Receiver, receiving
from memory.tests.rest import refusal

pytestmark = pytest.mark.django_db

Api = Callable[..., Any]
ADDRESS = "https://receiver.example/hook?token=a"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that takes what is signed."""
    with receiving() as one:
        yield one


def _made(client: Any, **fields: Any) -> dict[str, Any]:
    response = client.call("POST", "/api/webhooks", {"name": "app", "url": ADDRESS, **fields})
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = response.json()
    return answer


def test_a_webhook_is_made_and_its_secret_is_shown_once(api: Api) -> None:
    client = api("alice")
    made = _made(client)
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert client.call("GET", f"/api/webhooks/{made['id']}").json() == made
    assert client.call("GET", "/api/webhooks").json() == {"data": [made]}
    assert made["secretHint"] == secret[-4:]
    assert (made["apiKeyName"], made["enabled"], len(made["events"])) == ("alice", True, 6)
    stored = Webhook.objects.get()
    assert secret not in stored.secret
    assert secretbox.open_sealed(stored.secret) == secret


def test_a_webhook_is_changed_renewed_and_removed(api: Api) -> None:
    client = api("alice")
    made = _made(client)
    path = f"/api/webhooks/{made['id']}"
    changes = {"name": "other", "events": ["memory.deleted"], "enabled": False}
    changed = client.call("PUT", path, changes).json()
    assert (changed["name"], changed["events"], changed["enabled"]) == (
        "other",
        ["memory.deleted"],
        False,
    )
    assert changed["disabledReason"] == "asked"
    assert client.call("POST", f"{path}/rotate").json()["secret"] != made["secret"]
    assert client.call("DELETE", path).json() == {"success": True}
    refusal(client.call("GET", path), 404, "not_found")
    acts = AuditEntry.objects.filter(action__startswith="webhook.").order_by("pk")
    assert [row.action for row in acts] == [
        "webhook.create",
        "webhook.update",
        "webhook.rotate",
        "webhook.delete",
    ]


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"url": "nonsense"}, "url"),
        ({"url": "ftp://a.example/"}, "url"),
        ({"url": "http://a.example/"}, "url"),
        ({"url": "https://10.0.0.1/"}, "url"),
        ({"url": "http://127.0.0.1:9/"}, "url"),
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"url": "https://user:pass@a.example/"}, "url"),
        ({"url": "https://a.example/" + "a" * 2_000}, "url"),
        ({"events": []}, "events"),
        ({"events": ["memory.read"]}, "events.0"),
        ({"name": " "}, "name"),
        ({"name": "a" * 121}, "name"),
    ],
)
def test_what_cannot_be_a_webhook_is_refused_at_its_field(
    api: Api, fields: dict[str, Any], place: str
) -> None:
    body = {"name": "app", "url": ADDRESS, **fields}
    error = refusal(api("alice").call("POST", "/api/webhooks", body), 422, "invalid")
    assert list(error["fields"]) == [place]


def test_a_manager_may_name_the_local_network_but_never_metadata(api: Api) -> None:
    client = api("boss", *SCOPES)
    assert _made(client, url="http://10.0.0.1:8080/")["apiKeyName"] == "boss"
    body = {"name": "app", "url": "http://169.254.169.254/"}
    refusal(client.call("POST", "/api/webhooks", body), 422, "invalid")


def test_only_a_manager_hears_of_every_owner(api: Api) -> None:
    body = {"name": "app", "url": ADDRESS, "allOwners": True}
    refusal(api("alice").call("POST", "/api/webhooks", body), 403, "scope_missing")
    assert _made(api("boss", *SCOPES), allOwners=True)["apiKeyId"] is None
    other = {"name": "app", "url": ADDRESS, "apiKeyId": "boss"}
    refusal(api("alice").call("POST", "/api/webhooks", other), 403, "not_owner")


def test_texts_are_sent_only_to_who_may_read(api: Api) -> None:
    body = {"name": "app", "url": ADDRESS, "includeContent": True}
    refusal(api("writer", "write").call("POST", "/api/webhooks", body), 403, "scope_missing")


@pytest.mark.parametrize(
    "change",
    [
        {"url": "https://elsewhere.example/hook"},
        {"events": ["memory.created"]},
        {"enabled": True},
        {"includeContent": True},
    ],
    ids=str,
)
def test_who_may_not_read_has_no_texts_sent_elsewhere(api: Api, change: dict[str, Any]) -> None:
    writer = api("writer", "write")
    body = {"name": "app", "url": ADDRESS, "includeContent": True, "apiKeyId": "writer"}
    made = api("manager", *SCOPES).call("POST", "/api/webhooks", body).json()
    path = f"/api/webhooks/{made['id']}"
    refusal(writer.call("PUT", path, change), 403, "scope_missing")
    assert api("manager", *SCOPES).call("GET", path).json()["url"] == ADDRESS
    without = writer.call("PUT", path, {**change, "includeContent": False})
    assert without.status_code == 200, "as ids it may have them anywhere"


def test_what_another_owner_has_is_404(api: Api, receiver: Receiver, work: Work) -> None:
    boss, alice = api("boss", *SCOPES), api("alice")
    made = _made(boss, url=receiver.url)
    boss.call("POST", "/api/memory", {"content": "tea", "key": "k"})
    receiver.secret = made["secret"]
    work()
    path = f"/api/webhooks/{made['id']}"
    delivery = boss.call("GET", f"{path}/deliveries").json()["data"][0]
    for method, place in (
        ("GET", path),
        ("PUT", path),
        ("DELETE", path),
        ("POST", f"{path}/rotate"),
        ("POST", f"{path}/test"),
        ("GET", f"{path}/deliveries"),
        ("POST", f"/api/webhooks/deliveries/{delivery['id']}/redeliver"),
    ):
        body = {"enabled": False} if method == "PUT" else None
        refusal(alice.call(method, place, body), 404, "not_found")
    assert alice.call("GET", "/api/webhooks").json() == {"data": []}
    assert len(boss.call("GET", "/api/webhooks").json()["data"]) == 1


def test_the_log_tells_what_was_sent_and_sends_it_again(
    api: Api, receiver: Receiver, work: Work
) -> None:
    client = api("boss", *SCOPES)
    made = _made(client, url=receiver.url)
    receiver.secret = made["secret"]
    path = f"/api/webhooks/{made['id']}"
    stored = client.call("POST", "/api/memory", {"content": "tea", "key": "k"}).json()
    waiting = client.call("GET", f"{path}/deliveries", state="waiting").json()
    assert waiting["total"] == 1
    assert waiting["data"][0]["nextAttemptAt"] is not None
    work()
    tested = client.call("POST", f"{path}/test").json()
    assert (tested["state"], tested["statusCode"], tested["event"]) == ("sent", 204, "webhook.test")
    log = client.call("GET", f"{path}/deliveries").json()
    assert [row["event"] for row in log["data"]] == ["webhook.test", "memory.created"]
    row = log["data"][1]
    assert (row["state"], row["statusCode"], row["attempts"], row["nextAttemptAt"]) == (
        "sent",
        204,
        1,
        None,
    )
    assert row["items"] == [{"id": stored["id"], "revision": 1}]
    again = client.call("POST", f"/api/webhooks/deliveries/{row['id']}/redeliver").json()
    assert (again["state"], again["messageId"]) == ("waiting", row["messageId"])
    twice = client.call("POST", f"/api/webhooks/deliveries/{row['id']}/redeliver")
    refusal(twice, 409, "waiting")
    work()
    assert receiver.ids.count(row["messageId"]) == 2


def test_there_are_not_more_webhooks_of_an_owner_than_anybody_needs(api: Api) -> None:
    client = api("alice")
    for place in range(hooks.MOST):
        _made(client, name=f"app {place}")
    body = {"name": "one more", "url": ADDRESS}
    refusal(client.call("POST", "/api/webhooks", body), 409, "too_many")


def test_an_odd_query_of_the_log_is_refused(api: Api) -> None:
    client = api("alice")
    path = f"/api/webhooks/{_made(client)['id']}/deliveries"
    for query in ({"limit": 0}, {"page": 0}, {"state": "odd"}, {"limit": "a"}):
        refusal(client.call("GET", path, **query), 422, "invalid")
    assert client.call("GET", path, page=9).json()["data"] == []
