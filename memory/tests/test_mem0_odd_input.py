"""What mem0's routes do with input that no client sends by itself."""

from __future__ import annotations

from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext

from memory.tests.compat import CompatClient, client, remembered
from memory.tests.rest import MISSING

pytestmark = pytest.mark.usefixtures("first_start")


@pytest.fixture
def alice() -> CompatClient:
    return client("alice")


@pytest.mark.parametrize("moment", ["²", "1²", "٣.²", "9" * 400])
@pytest.mark.parametrize(
    ("method", "path", "body", "name"),
    [
        ("POST", "/v3/memories/add/", {"messages": "tea", "user_id": "ann"}, "timestamp"),
        ("PUT", f"/v1/memories/{MISSING}/", {}, "timestamp"),
        ("POST", "/v3/memories/", {"filters": {"user_id": "ann"}}, "start_date"),
    ],
)
def test_digits_that_are_no_number_are_no_time(
    alice: CompatClient, moment: str, method: str, path: str, body: dict[str, Any], name: str
) -> None:
    assert name in alice.refused(400, method, path, {**body, name: moment})


def test_a_time_in_a_query_is_refused_as_in_a_body(alice: CompatClient) -> None:
    assert "start_date" in alice.refused(400, "GET", "/v1/events/", start_date="²")


@pytest.mark.parametrize(
    "filters", ["{[]: 1}", "{{}: 'x'}", "{'user_id': 0x" + "f" * 5000 + "}", "{'user_id': 1j}"]
)
def test_a_filter_of_a_query_that_is_no_data_is_refused(alice: CompatClient, filters: str) -> None:
    kept = remembered(alice, "Prefers green tea")
    alice.refused(400, "DELETE", "/v1/memories/", filters=filters)
    alice.refused(400, "GET", "/mem0/memories", filters=filters)
    assert alice.ask("GET", f"/v1/memories/{kept}/")["memory"] == "Prefers green tea"


def test_a_number_may_name_an_entity(alice: CompatClient) -> None:
    alice.ask("POST", "/v3/memories/add/", {"messages": "tea", "user_id": 10**199})
    assert alice.ask("GET", f"/v1/entities/user/{10**199}/")["total_memories"] == 1
    alice.refused(400, "POST", "/v3/memories/add/", {"messages": "tea", "user_id": 10**200})


@pytest.mark.parametrize("kind", ["user", "agent", "app", "run"])
@pytest.mark.parametrize("name", ["%00", "a%00b"])
def test_a_name_that_no_database_holds_is_not_there(
    alice: CompatClient, kind: str, name: str
) -> None:
    alice.refused(404, "GET", f"/v1/entities/{kind}/{name}/")
    alice.refused(404, "DELETE", f"/v2/entities/{kind}/{name}/")


def test_too_many_changes_are_refused_before_any_is_looked_up(
    alice: CompatClient, django_assert_max_num_queries: Any
) -> None:
    sent = {"memories": [{"memory_id": MISSING, "text": "tea"}] * 1001}
    with django_assert_max_num_queries(10) as queries:
        alice.refused(400, "PUT", "/v1/batch/", sent)
    assert isinstance(queries, CaptureQueriesContext)


def test_messages_have_a_bound(alice: CompatClient) -> None:
    messages = [{"role": "user", "content": f"tea {number}"} for number in range(1001)]
    body = {"messages": messages, "user_id": "ann", "infer": False}
    assert "messages" in alice.refused(400, "POST", "/v3/memories/add/", body)
    added = alice.ask("POST", "/v3/memories/add/", {**body, "messages": messages[:1000]})
    assert len(added["results"]) == 1000


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/nothing/", 404), ("PATCH", "/v1/entities/", 405)]
)
def test_a_refusal_from_outside_the_routes_keeps_the_headers_of_every_answer(
    alice: CompatClient, method: str, path: str, status: int
) -> None:
    answer = alice.call(method, path)
    assert answer.status_code == status
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "no-store"
