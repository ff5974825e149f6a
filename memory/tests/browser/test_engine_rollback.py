"""The Engine page with an earlier index: rolling back, building, dropping."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from memory.principal import Principal
from memory.services import settings as studio_settings
from memory.tests.browser.conftest import Studio
from memory.tests.browser.test_accessibility import violations
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def switched(alice: Principal, manager: Principal, remember: Remember, work: Work) -> Principal:
    """Two memories, first embedded by the default model, now by the light one; one is newer."""
    remember(alice, "likes tea")
    work()
    studio_settings.update(manager, {"localModel": "use-multilingual"})
    remember(alice, "likes cocoa")
    work()
    return alice


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_with_an_earlier_index(studio: Studio, theme: Any) -> None:
    page = studio.open("/engine/", color_scheme=theme, bypass_csp=True)
    expect(page.locator("#engine-work")).to_contain_text("50.0 % of it is up to date")
    assert violations(page) == []


def test_going_back_shows_how_far_it_is_and_the_settings_again(studio: Studio, work: Work) -> None:
    page = studio.open("/engine/")
    area = page.locator("#engine-work")
    expect(page.get_by_label("Local model")).to_have_value("use-multilingual")
    area.get_by_role("button", name="Roll back").click()
    expect(page.locator("#notices")).to_contain_text("Going back to fake-e5")
    expect(area).to_contain_text("Building beside it")
    expect(page.get_by_label("Local model")).to_have_value("multilingual-e5-small")
    work()
    expect(area.get_by_role("button", name="Drop it now")).to_be_visible()
    area.get_by_role("button", name="Roll back").click()
    expect(page.locator("#notices")).to_contain_text("Back to the model fake-light.")


def test_building_is_stopped(studio: Studio) -> None:
    page = studio.open("/engine/")
    area = page.locator("#engine-work")
    area.get_by_role("button", name="Roll back").click()
    area.get_by_role("button", name="Stop building").click()
    expect(page.locator("#notices")).to_contain_text("Back to the model fake-light.")
    expect(area.get_by_role("button", name="Roll back")).to_be_visible()


def test_the_earlier_index_is_dropped(studio: Studio) -> None:
    page = studio.open("/engine/")
    page.get_by_role("button", name="Drop it now").click()
    expect(page.locator("#notices")).to_contain_text("The earlier index is dropped.")
    expect(page.get_by_role("button", name="Roll back")).to_have_count(0)
