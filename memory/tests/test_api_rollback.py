"""Going back to the earlier model over REST."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from memory.models import VectorIndex
from memory.principal import SCOPES, Principal
from memory.services import settings as studio_settings
from memory.tests.conftest import Remember, Work
from memory.tests.rest import refusal

ROLLBACK = "/api/memory/engine/rollback"
RETIRED = "/api/memory/engine/retired"
STATUS = "/api/memory/engine-status"


@pytest.fixture
def switched(alice: Principal, manager: Principal, remember: Remember, work: Work) -> None:
    """Two memories, first embedded by the default model, now by the light one."""
    remember(alice, "likes tea")
    remember(alice, "likes cocoa")
    work()
    studio_settings.update(manager, {"localModel": "use-multilingual"})
    work()


@pytest.fixture
def client(api: Callable[..., Any]) -> Any:
    """A client that may do everything."""
    return api("everything", *SCOPES)


def _coverage(client: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.call("GET", STATUS).json()["coverage"]
    return answer


def _signature(model: str) -> str:
    return VectorIndex.objects.get(model=model).signature


def test_the_status_tells_what_one_can_go_back_to(switched: None, client: Any) -> None:
    told = _coverage(client)
    assert (told["retired"], told["retiredPercent"]) == (_signature("fake-e5"), 100.0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", told["retiredUntil"])


def test_of_an_ordinary_key_nobody_counts_what_others_hold(
    switched: None, api: Callable[..., Any]
) -> None:
    told = _coverage(api("carol"))
    assert (told["retired"], told["retiredPercent"]) == (_signature("fake-e5"), None)


def test_a_rollback_answers_what_is_active(switched: None, client: Any) -> None:
    answer = client.call("POST", ROLLBACK)
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "success": True,
            "signature": _signature("fake-e5"),
            "active": True,
            "pending": 0,
            "jobId": None,
        },
    )
    assert _coverage(client)["signature"] == _signature("fake-e5")


def test_a_rollback_that_must_embed_names_its_job(
    switched: None, alice: Principal, remember: Remember, work: Work, client: Any
) -> None:
    remember(alice, "likes juice")
    work()
    answer = client.call("POST", ROLLBACK).json()
    assert (answer["active"], answer["pending"]) == (False, 1)
    assert client.call("GET", f"/api/jobs/{answer['jobId']}").json()["state"] == "queued"
    assert _coverage(client)["building"] == _signature("fake-e5")
    work()
    assert _coverage(client)["signature"] == _signature("fake-e5")


def test_without_an_earlier_index_there_is_nothing_to_go_back_to(client: Any) -> None:
    refusal(client.call("POST", ROLLBACK), 404, "not_found")
    refusal(client.call("DELETE", RETIRED), 404, "not_found")


def test_the_retired_index_is_dropped_over_rest(switched: None, client: Any) -> None:
    assert client.call("DELETE", RETIRED).json() == {"success": True, "dropped": 1}
    assert _coverage(client)["retired"] is None


@pytest.mark.parametrize(("method", "path"), [("POST", ROLLBACK), ("DELETE", RETIRED)])
def test_an_ordinary_key_may_do_neither(
    switched: None, api: Callable[..., Any], method: str, path: str
) -> None:
    refusal(api("carol").call(method, path), 403, "scope_missing")
    assert VectorIndex.objects.count() == 2
