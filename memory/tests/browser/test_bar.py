"""The bar: keys, theme, language, health, the menu."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from playwright.sync_api import expect

from memory.tests.browser.conftest import Studio

pytestmark = pytest.mark.browser


def test_tabs_are_reached_by_two_keys(studio: Studio) -> None:
    page = studio.open()
    for letter, heading in (("p", "Playground"), ("e", "Engine"), ("m", "Memories")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        expect(page.locator(".tabs [aria-current=page]")).to_have_text(heading)


def test_tabs_are_links(studio: Studio) -> None:
    page = studio.open()
    for name in ("Playground", "Engine", "Memories"):
        page.get_by_role("navigation", name="Sections").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_the_list_of_keys_opens_and_closes_by_keyboard(studio: Studio) -> None:
    page = studio.open()
    page.keyboard.press("?")
    dialog = page.locator("dialog[open]")
    expect(dialog).to_contain_text("Next, previous row")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator("#shortcuts")).to_be_focused()


def test_keys_rest_in_fields_and_can_be_switched_off(studio: Studio) -> None:
    page = studio.open()
    page.locator("#q").fill("")
    page.locator("#q").press("n")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator(".bar .menu summary").click()
    page.get_by_role("button", name="Switch single-key shortcuts off").click()
    expect(page.locator("body")).to_have_attribute("data-keys", "off")
    page.keyboard.press("n")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator(".bar .menu summary").click()
    page.get_by_role("button", name="Switch single-key shortcuts on").click()
    expect(page.locator("body")).to_have_attribute("data-keys", "on")


def test_the_theme_changes_at_once_and_stays(studio: Studio) -> None:
    page = studio.open(color_scheme="light")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate(background) == "rgb(16, 20, 24)"
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Dark theme")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Light theme").click()
    page.get_by_role("button", name="Theme of the system").click()
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == "rgb(16, 20, 24)"


@pytest.mark.parametrize(("code", "name"), [("ja", "日本語"), ("zh-hans", "简体中文")])
def test_the_language_changes(studio: Studio, code: str, name: str) -> None:
    page = studio.open("/engine/")
    page.locator(".bar .menu summary").click()
    page.locator("#language").select_option(label=name)
    expect(page.locator("html")).to_have_attribute("lang", code)
    expect(page).to_have_url(studio.url + "/engine/")


def test_the_menu_closes_by_escape_and_by_a_click_elsewhere(studio: Studio) -> None:
    page = studio.open()
    menu = page.locator(".bar .menu-body")
    page.locator(".bar .menu summary").click()
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    page.locator(".bar .menu summary").click()
    page.locator("#main").click(position={"x": 5, "y": 300})
    expect(menu).to_be_hidden()


def test_health_is_checked_when_the_page_opens_and_on_demand(studio: Studio) -> None:
    cache.clear()
    page = studio.open()
    expect(page.locator("#health")).to_contain_text("healthy")
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#health")).to_contain_text("healthy")


def test_signing_out(studio: Studio) -> None:
    page = studio.open()
    page.locator(".bar .menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_first_tab_stop_skips_the_bar(studio: Studio) -> None:
    page = studio.open()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
