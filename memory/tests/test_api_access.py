"""Who is let in, and the one shape of every refusal, on every route."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memory.api import api as rest_api
from memory.principal import SCOPES
from memory.tests.rest import MISSING, ROUTES, WITH_BODY, Route, refusal

Api = Callable[..., Any]
EVERY_ROUTE = pytest.mark.parametrize("route", ROUTES, ids=str)


@EVERY_ROUTE
def test_rest_10_without_a_credential_nothing_answers(first_start: None, route: Route) -> None:
    body = json.dumps(route.body) if route.body is not None else ""
    # As a real client: those of tests send no CSRF token, and none is missed.
    client = Client(enforce_csrf_checks=True)
    response = client.generic(route.method, route.path, body, content_type="application/json")
    refusal(response, 401, "unauthorized")
    assert response["WWW-Authenticate"] == "Bearer"


BAD_CREDENTIALS = (
    "Bearer ms_wrong",
    "Bearer ",
    "Bearer",
    "Basic YTpi",
    "bearer \u00ff",
    "ms_wrong",
    "Bearer a b",
)


@EVERY_ROUTE
def test_a_bad_credential_is_refused(first_start: None, route: Route) -> None:
    body = json.dumps(route.body) if route.body is not None else ""
    for header in BAD_CREDENTIALS:
        response = Client().generic(
            route.method,
            route.path,
            body,
            content_type="application/json",
            headers={"Authorization": header},
        )
        refusal(response, 401, "unauthorized")


@EVERY_ROUTE
def test_a_key_without_the_scope_is_refused(api: Api, route: Route) -> None:
    others = [scope for scope in SCOPES if scope != route.scope]
    response = api("weak", *others).call(route.method, route.path, route.body)
    error = refusal(response, 403, "scope_missing")
    assert route.scope in error["message"]


@EVERY_ROUTE
def test_a_key_with_every_scope_gets_an_answer_in_json(api: Api, route: Route) -> None:
    client = api("alice", *SCOPES)
    response = client.call(route.method, route.path, route.body)
    if route.file:
        assert response.status_code in (200, 422), "a file, or one is needed"
    elif response.status_code == 200:
        assert response.json()
        assert response["X-Request-Id"]
    elif route.path == "/api/vaults/import":
        refusal(response, 422, "sealed_damaged")
    else:
        is_vault = route.path.startswith("/api/vaults/")
        refusal(response, 404, "vault_not_found" if is_vault else "not_found")


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_a_wrong_method_is_405_in_the_one_shape(api: Api, route: Route) -> None:
    response = api("alice", *SCOPES).call("PATCH", route.path)
    refusal(response, 405, "method_not_allowed")
    assert route.method in response["Allow"]


BROKEN = (
    "{",
    "{'a': 1}",
    "\x00",
    "[",
    '{"a": 01}',
    '{"a": "\\ud8',
    "nonsense",
    "[" * 50_000,
    "[]",
    "3",
)


@pytest.mark.parametrize("route", WITH_BODY, ids=str)
def test_rest_11_broken_json_is_400_without_a_trace(api: Api, route: Route) -> None:
    client = api("alice", *SCOPES)
    for body in BROKEN:
        error = refusal(client.call(route.method, route.path, body), 400, "invalid_json")
        assert "line" not in error["message"]


@pytest.mark.parametrize("route", WITH_BODY, ids=str)
def test_a_body_that_is_not_utf8_is_400(api: Api, route: Route) -> None:
    response = api("alice", *SCOPES).call(route.method, route.path, b'{"a": "\xff"}')
    refusal(response, 400, "invalid_json")


@pytest.mark.parametrize("route", [route for route in WITH_BODY if route.strict], ids=str)
def test_an_unknown_field_is_refused_where_the_shape_is_strict(api: Api, route: Route) -> None:
    body = {**(route.body or {}), "surprise": 1}
    error = refusal(api("alice", *SCOPES).call(route.method, route.path, body), 422, "invalid")
    assert list(error["fields"]) == ["surprise"]


def test_an_unknown_field_of_a_new_memory_is_dropped(api: Api) -> None:
    body = {"content": "likes tea", "key": "drink", "surprise": 1}
    answer = api("alice").call("POST", "/api/memory", body).json()
    assert "surprise" not in answer


@pytest.mark.parametrize("path", ["/api/", "/api/nothing", "/api/memory/a/b/c", "/api/keys/a/b/c"])
def test_an_address_that_is_none_is_404_in_the_one_shape(api: Api, path: str) -> None:
    refusal(api("alice", *SCOPES).call("GET", path), 404, "not_found")


@pytest.mark.parametrize(
    "route",
    [
        Route("GET", "", "read"),
        Route("PUT", "", "write", {"content": "taken over"}),
        Route("DELETE", "", "write"),
        Route("DELETE", "?purge=true", "write"),
        Route("POST", "/restore", "write"),
        Route("GET", "/history", "read"),
    ],
    ids=str,
)
def test_what_another_owner_holds_is_404(api: Api, route: Route) -> None:
    bob = api("bob")
    body = {"content": "his", "key": "k"}
    memory_id = bob.call("POST", "/api/memory", body).json()["id"]
    path = f"/api/memory/{memory_id}{route.path}"
    refusal(api("alice").call(route.method, path, route.body), 404, "not_found")
    assert bob.call("GET", f"/api/memory/{memory_id}").json()["memory"]["content"] == "his"


def test_a_signed_in_session_reads_and_may_name_any_owner(api: Api) -> None:
    api("alice").call("POST", "/api/memory", {"content": "hers", "key": "k"})
    client = Client()
    client.force_login(User.objects.get(username="studio"))
    answer = client.get("/api/memory").json()
    assert [row["content"] for row in answer["data"]] == ["hers"]


@pytest.mark.parametrize("route", [route for route in ROUTES if route.method != "GET"], ids=str)
def test_a_session_changes_nothing_without_the_csrf_token(first_start: None, route: Route) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="studio"))
    body = json.dumps(route.body) if route.body is not None else ""
    response = client.generic(route.method, route.path, body, content_type="application/json")
    refusal(response, 403, "forbidden")


def test_a_session_with_the_csrf_token_may_write(first_start: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="studio"))
    client.get("/")
    token = client.cookies["memory_studio_csrf"].value
    response = client.post(
        "/api/memory",
        {"content": "noted", "key": "k"},
        content_type="application/json",
        headers={"X-CSRFToken": token},
    )
    assert response.status_code == 200
    assert response.json()["apiKeyName"] == "Default"


def test_a_bearer_key_needs_no_csrf_token(api: Api) -> None:
    client = Client(enforce_csrf_checks=True)
    secret = api("manager", *SCOPES).call("POST", "/api/keys", {"name": "app"}).json()["secret"]
    response = client.post(
        "/api/memory",
        {"content": "noted", "key": "k"},
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["/api/docs", "/api/openapi.json"])
def test_the_documentation_is_for_those_who_signed_in(first_start: None, path: str) -> None:
    client = Client()
    response = client.get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/signin/")
    client.force_login(User.objects.get(username="studio"))
    assert client.get(path).status_code == 200


def test_these_tests_know_every_route() -> None:
    documented = {
        (method.upper(), re.sub(r"{\w+}", "*", path))
        for path, methods in rest_api.get_openapi_schema()["paths"].items()
        for method in methods
    }
    tested = {(route.method, route.path.split("?")[0].replace(MISSING, "*")) for route in ROUTES}
    assert tested == documented


def test_every_answer_and_field_of_the_documentation_is_in_camel_case() -> None:
    schema = rest_api.get_openapi_schema()
    # Results of vaults have the names that the second seed gave them.
    others = {"ChunkOut", "IndexOut", "VaultSearchOut", "AskOut", "PreparedOut"}
    for title, shape in schema["components"]["schemas"].items():
        for name in shape.get("properties", {}):
            assert "_" not in name or title in others, name


def test_a_body_that_is_too_large_is_413(api: Api, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    body = {"content": "a" * 2000, "key": "k"}
    refusal(api("alice").call("POST", "/api/memory", body), 413, "too_large")


def test_an_answer_repeats_no_secret_and_no_text_of_an_error(api: Api) -> None:
    client = api("alice")
    response = client.call("POST", "/api/memory", {"content": 7, "key": "a private key"})
    refusal(response, 422, "invalid")
    assert "private" not in response.content.decode()


@pytest.mark.parametrize("path", ["/api/nothing", "/api/memory/health"], ids=["404", "405"])
def test_a_refusal_from_outside_the_routes_keeps_the_headers_of_every_answer(
    api: Api, path: str
) -> None:
    response = api("alice").call("POST", path)
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert response["X-Content-Type-Options"] == "nosniff"


def test_nothing_keeps_what_is_answered(api: Api) -> None:
    client = api("alice")
    client.call("POST", "/api/memory", {"content": "likes tea", "key": "k"})
    made = api("manager", *SCOPES).call("POST", "/api/keys", {"name": "app"})
    answers = [made, *(client.call("GET", f"/api/{path}") for path in ("memory", "nothing"))]
    answers += [client.call("GET", f"/api/memory/export?format={kind}") for kind in ("csv", "json")]
    assert {answer["Cache-Control"] for answer in answers} == {"no-store"}
    signed_in = Client()
    signed_in.force_login(User.objects.get(username="studio"))
    assert signed_in.get("/")["Cache-Control"] == "private, no-cache"
    assert "no-store" in signed_in.get("/signin/")["Cache-Control"]


def test_a_foreign_host_name_is_a_bad_request(api: Api, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["elsewhere.example"]
    refusal(api("alice").call("GET", "/api/memory"), 400, "bad_request")
