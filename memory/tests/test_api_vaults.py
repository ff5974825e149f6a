"""``/api/vaults``: shapes of the second seed, statuses, and who is let in."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory.tests.rest import refusal
from memory.tests.vaults import PASSPHRASE, REFUNDS, writer

pytestmark = pytest.mark.django_db(transaction=True)
Api = Callable[..., Any]
SEALED = {"name": "notes", "passphrase": PASSPHRASE}


def ingest(client: Any, vault: str, text: str, **more: Any) -> Any:
    body = {"name": "notes.md", "contentBase64": base64.b64encode(text.encode()).decode(), **more}
    return client.call("POST", f"/api/vaults/{vault}/ingest", body)


@pytest.fixture
def alice_api(api: Api) -> Any:
    client = api("alice")
    made = client.call("POST", "/api/vaults", SEALED)
    assert made.status_code == 200, made.content
    assert ingest(client, "notes", REFUNDS, title="Refund policy").status_code == 200
    return client


def test_a_vault_from_its_making_to_its_end(api: Api) -> None:
    client = api("alice")
    made = client.call("POST", "/api/vaults", {**SEALED, "autoLockMinutes": 5}).json()
    assert (made["sealed"], made["unlocked"], made["role"]) == (True, True, "manager")
    path = f"/api/vaults/{made['id']}"
    assert client.call("POST", f"{path}/lock").json()["unlocked"] is False
    wrong = client.call("POST", f"{path}/unlock", {"passphrase": "not this one"})
    refusal(wrong, 403, "wrong_passphrase")
    refusal(client.call("POST", f"{path}/search", {"query": "x"}), 409, "vault_locked")
    key = {"recoveryKey": made["recoveryKey"]}
    assert client.call("POST", f"{path}/unlock", key).json()["unlocked"] is True
    fresh = {**key, "newPassphrase": "another passphrase"}
    again = client.call("POST", f"{path}/passphrase", fresh).json()["recoveryKey"]
    assert again != made["recoveryKey"]
    changed = client.call("PUT", path, {"name": "papers", "deviceOnly": True}).json()
    assert (changed["name"], changed["deviceOnly"], changed["autoLockMinutes"]) == (
        "papers",
        True,
        5,
    )
    assert [row["name"] for row in client.call("GET", "/api/vaults").json()["data"]] == ["papers"]
    assert client.call("DELETE", path).json() == {"success": True}
    refusal(client.call("GET", path), 404, "vault_not_found")


def test_a_model_that_a_vault_cannot_have_is_refused_at_its_field(alice_api: Any) -> None:
    path = "/api/vaults/notes"
    for body, field in (
        ({"embeddingModel": "nobody"}, "embeddingModel"),
        ({"embeddingModel": "ms-marco-minilm-l6-v2"}, "embeddingModel"),
        ({"embeddingModel": "embeddinggemma", "embeddingDim": 300}, "embeddingDim"),
        ({"embeddingModel": "multilingual-e5-small", "embeddingDim": 768}, "embeddingDim"),
        ({"embeddingDim": 384}, "embeddingDim"),
        ({"autoLockMinutes": 99_999}, "autoLockMinutes"),
    ):
        error = refusal(alice_api.call("PUT", path, body), 422, "invalid")
        assert list(error["fields"]) == [field]
    for length in (768, 512, 256, 128, None):
        chosen = {"embeddingModel": "embeddinggemma", "embeddingDim": length}
        assert chosen.items() <= alice_api.call("PUT", path, chosen).json().items()


def test_a_search_answers_in_the_shape_of_the_second_seed(alice_api: Any) -> None:
    answer = alice_api.call(
        "POST", "/api/vaults/notes/search", {"query": "seven days", "mode": "hybrid"}
    ).json()
    (hit,) = answer["results"]
    assert set(answer) == {
        "vault_id",
        "query",
        "mode",
        "match_mode",
        "reranked",
        "index",
        "results",
        "warnings",
    }
    assert answer["index"] == {"generation": 2, "chunks": 1, "embedded": 1}
    assert (answer["mode"], answer["match_mode"], answer["reranked"]) == ("hybrid", "any", "light")
    assert (hit["label"], hit["kind"], hit["title"]) == ("S1", "card", "Refund policy")
    assert REFUNDS.encode()[hit["byte_start"] : hit["byte_end"]].decode() == hit["text"]
    assert hit["chunk_hash"].startswith("sha256:")
    assert set(hit["scores"]) == {"bm25", "vector", "rrf", "rerank"}
    read = alice_api.call("GET", f"/api/vaults/notes/assets/{hit['id']}").json()
    assert (read["body"], read["revision"]) == (REFUNDS, hit["revision"])
    refusal(
        alice_api.call("GET", f"/api/vaults/notes/assets/{hit['chunk_hash']}"), 404, "not_found"
    )


def test_absent_scores_are_null_and_modes_have_both_names(alice_api: Any) -> None:
    for mode in ("bm25", "keyword"):
        body = {"query": "退款", "mode": mode, "rerank": False, "matchMode": "all"}
        answer = alice_api.call("POST", "/api/vaults/notes/search", body).json()
        assert (answer["mode"], answer["reranked"]) == ("bm25", "none")
        scores = answer["results"][0]["scores"]
        assert scores["bm25"] > 0
        assert (scores["vector"], scores["rrf"], scores["rerank"]) == (None, None, None)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"query": "x" * 1025}, 422, "query_too_long"),
        ({"query": "x", "limit": 101}, 422, "limit_out_of_range"),
        ({"query": "x", "limit": 0}, 422, "limit_out_of_range"),
        ({"query": " ".join(f"w{n}" for n in range(65))}, 422, "too_many_terms"),
        ({"query": " "}, 422, "empty_query"),
        ({"query": "x", "mode": "fuzzy"}, 422, "invalid"),
        ({"query": "x", "matchMode": "ANY"}, 422, "invalid"),
        ({"query": "x", "url": "https://a"}, 422, "invalid"),
        ({"query": "x", "model": "m"}, 422, "invalid"),
    ],
)
def test_what_a_search_may_not_ask_is_refused(
    body: dict[str, Any], status: int, code: str, alice_api: Any
) -> None:
    refusal(alice_api.call("POST", "/api/vaults/notes/search", body), status, code)


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"%PDF-1.7", 422, "unsupported_type"),
        (b"\xc3", 422, "invalid_utf8"),
        (b" ", 422, "invalid_text"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, status: int, code: str, alice_api: Any) -> None:
    body = {"name": "a.pdf", "contentBase64": base64.b64encode(content).decode()}
    refusal(alice_api.call("POST", "/api/vaults/notes/ingest", body), status, code)
    odd = {"name": "a.pdf", "contentBase64": "%%%"}
    refusal(alice_api.call("POST", "/api/vaults/notes/ingest", odd), 422, "invalid")


def test_assets_are_put_changed_removed_and_brought_back(alice_api: Any) -> None:
    put = {"body": "hunter2", "title": "Mail", "kind": "credential", "meta": {"user": "ana"}}
    made = alice_api.call("POST", "/api/vaults/notes/assets", put).json()
    assert (made["outcome"], made["revision"], made["kind"]) == ("created", 1, "credential")
    path = f"/api/vaults/notes/assets/{made['id']}"
    changed = alice_api.call("PUT", path, {"body": "hunter3", "revision": 1}).json()
    assert (changed["outcome"], changed["revision"]) == ("revised", 2)
    refusal(alice_api.call("PUT", path, {"body": "late", "revision": 1}), 409, "stale")
    assert alice_api.call("GET", path).json()["body"] == "hunter3"
    assert alice_api.call("GET", path, revision=1).json()["body"] == "hunter2"
    rows = alice_api.call("GET", f"{path}/revisions").json()["data"]
    assert [row["revision"] for row in rows] == [1]
    listed = alice_api.call("GET", "/api/vaults/notes/assets", kind="credential").json()
    assert (listed["total"], listed["data"][0]["title"]) == (1, "Mail")
    assert alice_api.call("DELETE", path).json() == {"success": True}
    refusal(alice_api.call("GET", path), 404, "not_found")
    assert alice_api.call("POST", f"{path}/restore").json() == {"success": True}
    assert alice_api.call("DELETE", path, purge="true").json() == {"success": True}
    refusal(alice_api.call("POST", f"{path}/restore"), 404, "not_found")


def test_a_key_sees_the_vaults_it_owns_or_was_granted(alice_api: Any, api: Api) -> None:
    bob = api("bob")
    body = {"query": "refund"}
    refusal(bob.call("POST", "/api/vaults/notes/search", body), 404, "vault_not_found")
    grant = {"key": "bob", "role": "reader"}
    assert alice_api.call("PUT", "/api/vaults/notes/grants", grant).json()["role"] == "reader"
    assert bob.call("POST", "/api/vaults/notes/search", body).json()["results"]
    assert bob.call("GET", "/api/vaults/notes").json()["role"] == "reader"
    refusal(ingest(bob, "notes", "x"), 403, "not_authorized")
    refusal(bob.call("GET", "/api/vaults/notes/grants"), 403, "not_authorized")
    assert len(alice_api.call("GET", "/api/vaults/notes/grants").json()["data"]) == 1
    assert alice_api.call("DELETE", "/api/vaults/notes/grants/bob").json() == {"success": True}
    refusal(bob.call("GET", "/api/vaults/notes"), 404, "vault_not_found")


def test_status_and_index(alice_api: Any) -> None:
    done = alice_api.call("POST", "/api/vaults/notes/index", {"budgetSeconds": 5}).json()
    assert (done["chunks"], done["embedded"], done["made"], done["complete"]) == (1, 1, 1, True)
    found = alice_api.call("GET", "/api/vaults/notes").json()
    assert found["index"]["ready"] is True
    assert found["index"]["chunks"] == 1
    assert found["limits"]["chunks"] == 10_000
    assert found["embedding"]["backend"] == "local"
    assert found["assets"]["card"] == 1
    assert REFUNDS not in str(found)


def test_a_question_is_answered_with_its_sources(api: Api, settings: Any, tmp_path: Path) -> None:
    with writer(settings, tmp_path) as provider:
        client = api("alice")
        client.call("POST", "/api/vaults", SEALED)
        ingest(client, "notes", REFUNDS)
        answer = client.call("POST", "/api/vaults/notes/ask", {"question": "refund days?"}).json()
        assert (answer["answer"], answer["citations"]) == ("Within seven days [S1].", ["S1"])
        assert answer["insufficient_evidence"] is False
        assert answer["results"][0]["label"] == "S1"
        nothing = {"question": "astronomy", "mode": "bm25"}
        none = client.call("POST", "/api/vaults/notes/ask", nothing).json()
        assert (none["answer"], none["insufficient_evidence"]) == (None, True)
        assert len(provider.requests) == 1


def test_without_a_service_a_question_is_503(alice_api: Any) -> None:
    response = alice_api.call("POST", "/api/vaults/notes/ask", {"question": "refund?"})
    refusal(response, 503, "generation_not_configured")


def test_the_status_of_an_open_vault_has_no_limits(alice_api: Any) -> None:
    made = alice_api.call("POST", "/api/vaults", {"name": "library", "sealed": False}).json()
    found = alice_api.call("GET", f"/api/vaults/{made['id']}").json()
    assert (found["index"]["place"], found["limits"]) == ("database", None)
    alice_api.call("PUT", "/api/vaults/library", {"embeddingModel": "use-multilingual"})
    found = alice_api.call("GET", "/api/vaults/library").json()
    assert (found["index"]["place"], found["limits"]["chunks"]) == ("both", 10_000)
