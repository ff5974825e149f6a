"""The settings of chats over REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory.chat_settings import CHAT_FIELDS, normalise

pytestmark = pytest.mark.django_db
ROUTE = "/api/settings/gateway"


def test_settings_are_read_and_changed_by_managers_only(api: Callable[..., Any]) -> None:
    chief, other = api("chief", "manage"), api("other")
    before = chief.call("GET", ROUTE).json()
    assert before == {entry.api: entry.default for entry in CHAT_FIELDS}
    changes = {"injectionStyle": "classic", "injectionBudgetMs": 50, "traceText": True}
    assert chief.call("PUT", ROUTE, changes).json() == {**before, **changes}
    assert chief.call("GET", ROUTE).json() == {**before, **changes}
    assert chief.call("PUT", ROUTE, {}).json() == {**before, **changes}
    assert [other.call(method, ROUTE, {}).status_code for method in ("GET", "PUT")] == [403, 403]


@pytest.mark.parametrize(
    "change",
    [
        {"injectionStyle": "xml"},
        {"injectionScope": "all"},
        {"injectionLimit": 0},
        {"injectionBudgetMs": 5001},
        {"upstreamIdleSeconds": "long"},
        {"traceRetentionDays": 366},
        {"unknown": 1},
    ],
)
def test_what_is_out_of_bounds_is_refused(api: Callable[..., Any], change: dict[str, Any]) -> None:
    answer = api("chief", "manage").call("PUT", ROUTE, change)
    assert answer.status_code == 422
    assert list(answer.json()["error"]["fields"]) == list(change)


def test_what_is_stored_wrongly_counts_as_the_default() -> None:
    stored = {"memoryInjectionStyle": 7, "memoryInjectionLimit": 1000, "memoryTraceText": "yes"}
    found = normalise(stored)
    assert (found.style, found.limit, found.keeps_text) == ("block", 100, False)
