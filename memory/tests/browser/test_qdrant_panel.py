"""The panel Qdrant in a browser: switched on, filled, tried, and looked at in both themes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from engine.qdrant.server import load
from engine.testing.fake_qdrant import FakeQdrant, serving
from memory.principal import Principal
from memory.tests.browser.conftest import Studio
from memory.tests.conftest import Remember, Work
from memory.tests.qdrant_server import switch_on

pytestmark = pytest.mark.browser


@pytest.fixture
def server() -> Iterator[FakeQdrant]:
    # The client's library takes its time to import, once in a process.
    load()
    with serving() as made:
        yield made


@pytest.fixture(autouse=True)
def filled(alice: Principal, remember: Remember, work: Work) -> None:
    """Two memories with vectors."""
    remember(alice, "likes green tea", key="tea")
    remember(alice, "drives to work", key="car")
    work()


def test_one_switch_fills_it_and_it_is_searched(
    studio: Studio, work: Work, server: FakeQdrant
) -> None:
    page = studio.open("/engine/")
    panel = page.locator("#engine-qdrant")
    panel.get_by_label("Host").fill("127.0.0.1")
    panel.get_by_label("Port").fill(str(server.port))
    panel.get_by_label("Use Qdrant").check()
    panel.get_by_role("button", name="Save Qdrant settings").click()
    expect(page.get_by_text("Qdrant settings saved. A real search took")).to_be_visible()
    state = page.locator("#qdrant-state")
    expect(state).to_contain_text("until then searches use the index here")
    work()
    expect(page.locator("#qdrant-state .chip-on")).to_be_visible()
    panel.get_by_placeholder("Ask Qdrant alone…").fill("green tea")
    panel.get_by_placeholder("Ask Qdrant alone…").press("Enter")
    expect(panel.locator(".qdrant-hits tbody tr").first).to_contain_text("likes green tea")
    expect(panel.get_by_placeholder("Ask Qdrant alone…")).to_have_value("green tea")
    panel.get_by_role("button", name="Clean up").click()
    expect(panel).to_contain_text("0 points of expired memories and 0 strays removed.")
    card = page.locator(".card", has=page.get_by_role("heading", name="Qdrant"))
    expect(card).to_contain_text(re.compile(r"Points\s*2"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_its_states_can_be_read_by_everybody(
    studio: Studio, work: Work, server: FakeQdrant, theme: Literal["light", "dark"]
) -> None:
    switch_on(server)
    work()
    page = studio.open("/engine/", color_scheme=theme)
    page.locator("#qdrant-query").fill("tea")
    page.locator("#qdrant-search").click()
    expect(page.locator(".qdrant-hits")).to_be_visible()
    server.stop()
    page.locator("#qdrant-test").click()
    expect(page.locator(".qdrant-result")).to_contain_text("Qdrant cannot be reached.")
    page.reload()
    found = Axe().run(page, context="#engine-qdrant").response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
