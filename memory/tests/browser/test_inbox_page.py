"""The inbox by keyboard alone: move, accept, reject, edit, undo."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memory.models import InboxItem, Memory
from memory.principal import Principal
from memory.services.extraction import learning
from memory.services.extraction.learning import Turn
from memory.tests.browser.conftest import Studio

pytestmark = pytest.mark.browser


@pytest.fixture
def page(studio: Studio, alice: Principal) -> Page:
    """The inbox with four doubts."""
    for drink in ("tea", "cocoa", "milk", "juice"):
        learning.learn(alice, Turn(f"Maybe I like {drink}."))
    return studio.open("/inbox/")


def rows(page: Page) -> list[str]:
    """What the rows say."""
    return page.locator("[data-open]").all_inner_texts()


def test_keys_decide_and_the_next_row_has_the_focus(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator("#notices")).to_contain_text("Accepted")
    expect(page.locator("[data-row]")).to_have_count(3)
    assert Memory.objects.get().content == "Maybe I like milk"
    expect(page.locator("[data-open]:focus")).to_have_text("Maybe I like cocoa")
    page.keyboard.press("r")
    expect(page.locator("[data-row]")).to_have_count(2)
    assert InboxItem.objects.get(state="rejected").content == "Maybe I like cocoa"
    page.keyboard.press("u")
    expect(page.locator("[data-row]")).to_have_count(3)
    assert rows(page) == ["Maybe I like juice", "Maybe I like cocoa", "Maybe I like tea"]


def test_a_row_is_edited_and_accepted_by_enter(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("e")
    field = page.locator("#row-form textarea")
    expect(field).to_be_focused()
    field.fill("I like orange juice")
    page.keyboard.press("Enter")
    expect(page.locator("[data-row]")).to_have_count(3)
    assert Memory.objects.get().content == "I like orange juice"


def test_escape_leaves_the_row_as_it_was(page: Page) -> None:
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page.locator("#row-form textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#row-form")).to_have_count(0)
    assert InboxItem.objects.filter(state="pending").count() == 4


def test_selected_rows_go_together(page: Page) -> None:
    for _ in range(2):
        page.keyboard.press("j")
        page.keyboard.press("x")
    page.locator(".bulk-actions button[value=reject]").click()
    expect(page.locator("[data-row]")).to_have_count(2)
    assert InboxItem.objects.filter(state="rejected").count() == 2


def test_the_key_leads_to_the_inbox(page: Page) -> None:
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page).to_have_url(page.url.split("/inbox")[0] + "/playground/")
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/inbox/")


def test_the_panel_of_the_playground_answers_in_its_place(page: Page, studio: Studio) -> None:
    page = studio.open("/playground/")
    page.fill("#turn-text", "I prefer dark mode.")
    page.locator("#extract-try").click()
    expect(page.locator("#playground-extract")).to_contain_text("preference:dark_mode")
    assert Memory.objects.count() == 0
