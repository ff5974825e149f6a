"""The memory backends on the Engine page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memory.models import Job
from memory.tests.backends import Brain, brain, configure
from memory.tests.views.conftest import Studio
from memory.tests.views.test_engine import SETTINGS


@pytest.fixture
def running(studio: Studio) -> Iterator[Brain]:
    """A service that is configured as a fallback."""
    with brain() as made:
        configure("sqlite", ["brain"], brain=made.config)
        yield made


def test_they_are_listed_with_their_roles(studio: Studio, running: Brain) -> None:
    body = " ".join(studio.text("/engine/").split())
    assert "Memory Studio" in body
    assert running.config["baseUrl"] in body
    assert "fallback" in body
    assert 'chip-off">not checked' in body
    assert running.calls == []


def test_a_check_asks_them_and_the_page_remembers(studio: Studio, running: Brain) -> None:
    response = studio.post("/engine/backends/check/", target="engine-backends")
    assert response.status_code == 200
    assert "not checked" not in response.content.decode()
    assert "GET /memories/search" in running.calls
    assert 'chip-off">not checked' not in studio.text("/engine/")


def test_one_that_fails_says_why(studio: Studio, running: Brain) -> None:
    running.goes_down()
    body = studio.post("/engine/backends/check/", target="engine-backends").content.decode()
    assert "The memory backend cannot be reached." in body


@pytest.mark.parametrize("action", ["copy", "pull"])
def test_transfers_start_a_job(studio: Studio, running: Brain, action: str) -> None:
    response = studio.post(f"/engine/backends/brain/{action}/", target="notices")
    assert response.status_code == 200
    assert Job.objects.get().kind == f"backend-{action}"


def test_a_wrong_configuration_stands_at_its_field(studio: Studio) -> None:
    data = SETTINGS | {"backend_configs": '{"brain": {"baseUrl": "http://127.0.0.1:9"}}'}
    response = studio.post("/engine/settings/", data, target="engine-settings")
    assert response.status_code == 422
    body = response.content.decode()
    assert 'id="set-backend_configs_error"' in body
    assert "baseUrl is an address that is not allowed here." in body
