"""The tab Memories, every control of it, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.tests.browser.conftest import Studio
from memory.tests.conftest import Remember

pytestmark = pytest.mark.browser


@pytest.fixture
def filled(alice: Principal, remember: Remember) -> list[Memory]:
    """Four memories, the last one newest."""
    return [
        remember(alice, "likes black tea", key="tea", session_id="s-1"),
        remember(alice, "went to Kyoto in April", key="kyoto", type="episodic"),
        remember(alice, "releases need a tag", key="release", type="procedural"),
        remember(alice, "編集者は Neovim を好む", key="editor"),
    ]


def rows(page: Page) -> list[str]:
    return page.locator("[data-row] .key").all_inner_texts()


def test_search_waits_for_a_pause_and_fills_the_address(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open()
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url) if "q=" in r.url else None)
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.locator("#q").press_sequentially("kyo", delay=20)
    expect(page.locator("[data-row]")).to_have_count(1)
    assert len(asked) == 1
    expect(page).to_have_url(re.compile(r"\?q=kyo&state=live$"))
    page.go_back()
    expect(page.locator("[data-row]")).to_have_count(4)


def test_escape_empties_the_search_and_then_leaves_it(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open("/?q=kyo")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator("[data-row]")).to_have_count(4)
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="editor", exact=True)).to_be_focused()


def test_filters_narrow_and_are_cleared(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    page.get_by_label("Type", exact=True).select_option("episodic")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_label("Session", exact=True).select_option("s-1")
    expect(page.get_by_text("Nothing matches these filters")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    expect(page.locator("[data-row]")).to_have_count(4)
    page.get_by_label("State", exact=True).select_option("trash")
    expect(page.get_by_text("Nothing matches these filters")).to_be_visible()


def test_the_key_selector_shows_one_owner(
    studio: Studio, filled: list[Memory], bob: Principal, remember: Remember
) -> None:
    remember(bob, "bob's own", key="bobs")
    page = studio.open()
    expect(page.locator("[data-row]")).to_have_count(5)
    page.get_by_label("Key", exact=True).select_option(label="bob")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.get_by_role("columnheader", name="Owner")).to_have_count(0)
    page.goto(studio.url + "/engine/")
    page.goto(studio.url + "/")
    assert rows(page) == ["bobs"]


def test_a_memory_is_added_with_the_keyboard(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    page.keyboard.press("n")
    dialog = page.locator("dialog[open]")
    expect(dialog.get_by_label("Key", exact=True)).to_be_focused()
    page.keyboard.type("fact:new")
    dialog.get_by_label("Content").fill("new fact")
    dialog.get_by_label("Metadata (JSON)").fill("{broken")
    dialog.get_by_role("button", name="Add memory").click()
    metadata = dialog.get_by_label("Metadata (JSON)")
    expect(metadata).to_be_focused()
    expect(metadata).to_have_accessible_description("This is not valid JSON.")
    metadata.fill('{"source": "me"}')
    dialog.get_by_label("Owner").select_option(label="alice")
    dialog.get_by_label("Pinned").check()
    dialog.get_by_role("button", name="Add memory").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("Memory added.")).to_be_visible()
    expect(page.locator("#new")).to_be_focused()
    assert rows(page)[0] == "fact:new"
    expect(page.locator("#memories-stats")).to_contain_text("5")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-row]")).to_have_count(4)


def test_the_dialog_closes_by_escape_by_cancel_and_by_its_cross(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open()
    dialog = page.locator("dialog[open]")
    ways: list[Callable[[], None]] = [
        lambda: page.keyboard.press("Escape"),
        lambda: dialog.get_by_role("link", name="Cancel").click(),
        lambda: dialog.get_by_role("link", name="Close").click(),
    ]
    for close in ways:
        page.locator("#new").click()
        expect(dialog).to_be_visible()
        close()
        expect(dialog).to_have_count(0)
        expect(page.locator("#new")).to_be_focused()


def test_a_row_is_edited_in_place_by_keyboard(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="release", exact=True)).to_be_focused()
    page.keyboard.press("e")
    field = page.locator("#row-form textarea")
    expect(field).to_be_focused()
    field.fill("releases need a signed tag")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Memory saved.")).to_be_visible()
    expect(page.locator("[data-row]").nth(1)).to_contain_text("releases need a signed tag")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-row]").nth(1)).not_to_contain_text("signed")


def test_escape_leaves_a_row_as_it_was(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    page.get_by_role("link", name="Edit tea").click()
    page.locator("#row-form textarea").fill("  ")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This field is required.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#row-form")).to_have_count(0)
    expect(page.locator("[data-row]").nth(3)).to_contain_text("likes black tea")


def test_enter_opens_the_panel_and_moving_on_follows(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    title = page.locator("#peek-title")
    expect(title).to_have_text("editor")
    expect(page.locator("[aria-current=true][data-row]")).to_contain_text("editor")
    page.keyboard.press("j")
    expect(title).to_have_text("release")
    page.keyboard.press("k")
    expect(title).to_have_text("editor")
    expect(page).to_have_url(re.compile(rf"open={filled[3].pk}"))
    page.keyboard.press("Escape")
    expect(title).to_have_count(0)
    expect(page.get_by_role("link", name="editor", exact=True)).to_be_focused()
    expect(page).not_to_have_url(re.compile("open="))


def test_the_panel_edits_every_field_and_keeps_earlier_texts(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open(f"/?open={filled[0].pk}")
    panel = page.locator("#memories-peek")
    panel.get_by_label("Content").fill("likes green tea")
    panel.get_by_label("Session").fill("s-2")
    panel.get_by_text("Metadata", exact=True).click()
    panel.get_by_label("Metadata (JSON)").fill('{"cups": 3}')
    panel.get_by_label("Shared with all keys").check()
    panel.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Memory saved.")).to_be_visible()
    expect(panel).to_contain_text("Version 1")
    panel.get_by_role("button", name="Restore version 1").click()
    expect(panel.get_by_label("Content")).to_have_value("likes black tea")
    expect(page.get_by_text("Version 1 is back.")).to_be_visible()
    panel.get_by_role("link", name="Close").click()
    expect(panel.locator(".peek-body")).to_have_count(0)


def test_a_panel_field_that_is_wrong_says_so(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open(f"/?open={filled[0].pk}")
    panel = page.locator("#memories-peek")
    panel.get_by_label("Key", exact=True).fill("kyoto")
    panel.get_by_role("button", name="Save").click()
    expect(panel.get_by_label("Key", exact=True)).to_have_accessible_description(
        "Another memory of this owner has this key."
    )


def test_find_similar_leads_to_the_playground(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open(f"/?open={filled[0].pk}")
    page.get_by_role("link", name="Find similar").click()
    expect(page.locator("#play-q")).to_have_value("likes black tea")
    expect(page.get_by_label("Semantic")).to_be_checked()


def test_selected_rows_are_pinned_deleted_and_brought_back(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open()
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_text("2 memories pinned.")).to_be_visible()
    expect(page.locator("[data-row] .flag")).to_have_count(2)
    page.get_by_label("Select all on this page").check()
    expect(page.get_by_text("4 selected")).to_be_visible()
    page.get_by_role("button", name="Unpin").click()
    expect(page.locator("[data-row] .flag")).to_have_count(0)
    page.get_by_label("Select all on this page").check()
    page.locator(".bulk-actions").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("4 memories deleted.")).to_be_visible()
    expect(page.get_by_text("No memories yet")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-row]")).to_have_count(4)


def test_after_a_delete_the_focus_is_on_the_next_row(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    page.get_by_role("button", name="Delete release").click()
    expect(page.locator("[data-row]")).to_have_count(3)
    expect(page.get_by_role("link", name="kyoto", exact=True)).to_be_focused()
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator("#notices .notice")).to_have_count(0)


def test_the_trash_restores_and_erases(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    page.get_by_role("button", name="Delete tea").click()
    page.get_by_role("button", name="Delete kyoto").click()
    expect(page.locator("[data-row]")).to_have_count(2)
    page.get_by_label("State", exact=True).select_option("trash")
    page.get_by_role("button", name="Restore tea").click()
    expect(page.get_by_text("1 memory restored.")).to_be_visible()
    page.get_by_label("Select kyoto").check()
    page.get_by_role("button", name="Delete for ever").click()
    expect(page.get_by_text("1 memory erased for ever.")).to_be_visible()
    assert sorted(Memory.objects.values_list("key", flat=True)) == ["editor", "release", "tea"]


def test_pages_sizes_and_order(studio: Studio, alice: Principal, remember: Remember) -> None:
    for number in range(45):
        remember(alice, f"fact number {number:02}", key=f"fact:{number:02}")
    page = studio.open()
    page.locator("#size-20").click()
    expect(page.locator("[data-row]")).to_have_count(20)
    table = page.get_by_role("table")
    table.get_by_role("link", name="Key", exact=True).click()
    expect(page.locator("[data-row]").first).to_contain_text("fact:00")
    page.locator("#page-next").click()
    expect(page.locator("#status-start")).to_contain_text("21–40 of 45")
    expect(page.locator("[data-row]").first).to_contain_text("fact:20")
    page.locator("#page-next").click()
    expect(page.locator("[data-row]")).to_have_count(5)
    page.locator("#page-previous").click()
    expect(page.locator("[data-row]")).to_have_count(20)
    table.get_by_role("link", name="Key", exact=True).click()
    expect(page.locator("[data-row]").first).to_contain_text("fact:44")
    table.get_by_role("link", name="Tokens").click()
    expect(page).to_have_url(re.compile("sort=-tokens"))
    table.get_by_role("link", name="Age").click()
    expect(page).to_have_url(re.compile("sort=-created"))
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(20)
    assert ApiKey.objects.count() == 2


def test_the_card_how_it_works_stays_folded(studio: Studio) -> None:
    page = studio.open()
    expect(page.get_by_text("Facts come in from conversations")).to_be_visible()
    page.get_by_text("How it works").click()
    expect(page.get_by_text("Facts come in from conversations")).to_be_hidden()
    page.wait_for_function("document.cookie.includes('how=folded')")
    page.reload()
    expect(page.get_by_text("Facts come in from conversations")).to_be_hidden()


def test_a_server_that_is_gone_is_told_above_the_tools(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open()
    page.route("**/memories/bulk/", lambda route: route.fulfill(status=500, body="oops"))
    page.get_by_role("button", name="Delete tea").click()
    expect(page.get_by_role("alert")).to_contain_text("The server did not answer")
    expect(page.locator("[data-row]")).to_have_count(4)
    assert any("500" in problem for problem in studio.problems)
    studio.problems.clear()
