"""The keyboard alone: every stop is seen, and no action throws the focus away."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from memory.clock import now
from memory.models import Memory
from memory.principal import Principal
from memory.tests.browser.conftest import Studio
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.browser

STOPS_AT_MOST = 260
UNSEEN = """() => {
    const at = document.activeElement;
    if (at === document.body) return 'nothing';
    if (at.tabIndex < 0) return '';
    const box = at.getBoundingClientRect();
    const parts = [0.05, 0.5, 0.95].flatMap(x => [0.1, 0.5, 0.9].map(y => [x, y]));
    const seen = parts.filter(([x, y]) => {
        const top = document.elementFromPoint(box.x + x * box.width, box.y + y * box.height);
        return top && (at.contains(top) || top.closest('label')?.contains(at));
    });
    const picker = at.type === 'datetime-local'; // its own parts carry the ring
    const ring = picker || getComputedStyle(at).outlineStyle !== 'none';
    return ring && seen.length > parts.length / 2 ? '' : at.outerHTML.slice(0, 150);
}"""


@pytest.fixture
def filled(alice: Principal, remember: Remember) -> list[Memory]:
    """Thirty old memories, more than a window shows."""
    then = now() - timedelta(days=40)
    return [
        remember(
            alice, f"old fact {n:02}.", key=f"fact:{n:02}", created_at=then - timedelta(minutes=n)
        )
        for n in range(30)
    ]


def tab_to(page: Page, selector: str, key: str = "Tab") -> None:
    """Press ``key`` until the focus is on an element that matches."""
    for _ in range(STOPS_AT_MOST):
        page.keyboard.press(key)
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"{selector} is not reached by {key}")


def unseen_stops(page: Page) -> list[str]:
    """Every stop that is covered, outside the window or without a ring, up to the page's end."""
    found: list[str] = []
    for count in range(STOPS_AT_MOST):
        page.keyboard.press("Tab")
        problem = str(page.evaluate(UNSEEN))
        if problem == "nothing":
            if count > 2:
                return found
        elif problem:
            found.append(problem)
    raise AssertionError("the focus never leaves the page")


@pytest.mark.parametrize("locale", ["en", "ja"])
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (800, "dark"), (320, "dark")])
@pytest.mark.parametrize("path", ["/", "/engine/", "/memories/compact/"])
def test_every_stop_is_seen(
    studio: Studio, filled: list[Memory], path: str, width: int, theme: str, locale: str
) -> None:
    window = {"width": width, "height": 640}
    page = studio.open(path, viewport=window, color_scheme=theme, locale=locale)
    assert unseen_stops(page) == []


def test_stops_are_seen_beside_picked_rows_and_under_a_notice(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open()
    for key in "jjdjxjx":
        page.keyboard.press(key)
    expect(page.get_by_text("1 memory deleted.")).to_be_visible()
    page.keyboard.press("x")
    assert unseen_stops(page) == []
    tab_to(page, "#pick-all")
    page.keyboard.press("Tab")
    expect(page.locator(".pick-row").first).to_be_focused()


def test_an_action_far_down_is_told_there_and_undone_by_one_key(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open()
    for _ in range(25):
        page.keyboard.press("j")
    page.keyboard.press("d")
    expect(page.get_by_text("1 memory deleted.")).to_be_in_viewport()
    expect(page.locator("[data-row]").nth(24).locator("[data-open]")).to_be_focused()
    page.keyboard.press("u")
    expect(page.get_by_text("1 memory restored.")).to_be_in_viewport()
    expect(page.locator("[data-row]")).to_have_count(30)
    expect(page.locator("[data-open]:focus")).to_be_in_viewport()


def test_an_undo_by_its_button_leads_back_to_the_row(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    for key in "jjjjjd":
        page.keyboard.press(key)
    expect(page.get_by_text("1 memory deleted.")).to_be_visible()
    tab_to(page, "[data-undo]", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="fact:04", exact=True)).to_be_focused()


def test_picked_rows_are_deleted_by_one_key(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open()
    page.keyboard.press("j")
    for key in "xjxjx":
        page.keyboard.press(key)
    expect(page.get_by_text("3 selected")).to_be_in_viewport()
    page.keyboard.press("d")
    expect(page.get_by_text("3 memories deleted.")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("[data-row]")).to_have_count(30)


def test_an_answer_is_shown_though_the_list_was_drawn_anew_meanwhile(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open(f"/?open={filled[3].pk}")
    held: list[Route] = []
    page.route("**/memories/bulk/", lambda route: held.append(route))
    tab_to(page, ".peek .button-bad")
    with page.expect_request("**/memories/bulk/"):
        page.keyboard.press("Enter")
    with page.expect_response(re.compile("refresh=1")):
        page.evaluate("document.body.dispatchEvent(new CustomEvent('job-ended'))")
    expect(page.locator("#memories-main[aria-busy]")).to_have_count(0)
    held[0].continue_()
    expect(page.get_by_text("1 memory deleted.")).to_be_visible()
    expect(page.locator(".peek")).to_contain_text("in the trash")


def test_a_dismissed_notice_leaves_the_focus_in_the_page(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open()
    page.keyboard.press("j")
    page.keyboard.press("d")
    expect(page.get_by_text("1 memory deleted.")).to_be_visible()
    tab_to(page, "[data-dismiss]", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_an_emptied_list_takes_the_focus(studio: Studio, filled: list[Memory]) -> None:
    page = studio.open("/?q=fact+07")
    page.keyboard.press("j")
    page.keyboard.press("d")
    expect(page.get_by_role("link", name="Clear filters")).to_be_focused()


def test_in_a_narrow_window_the_panel_takes_the_focus_and_closes_when_left(
    studio: Studio, filled: list[Memory]
) -> None:
    page = studio.open(viewport={"width": 320, "height": 640})
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#peek-title")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.locator(".peek-body")).to_have_count(0)
    expect(page.locator("#main :focus")).to_be_in_viewport()


def test_the_menu_closes_when_the_focus_leaves_it(studio: Studio) -> None:
    page = studio.open()
    tab_to(page, ".bar .menu summary")
    page.keyboard.press("Enter")
    tab_to(page, "#signout")
    page.keyboard.press("Tab")
    expect(page.locator(".bar .menu-body")).to_be_hidden()


def test_a_list_of_languages_waits_for_enter(studio: Studio) -> None:
    page = studio.open()
    tab_to(page, ".bar .menu summary")
    page.keyboard.press("Enter")
    tab_to(page, "#language")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#language")).to_have_value("zh-hans")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")


def test_checking_health_keeps_the_focus(studio: Studio) -> None:
    page = studio.open()
    tab_to(page, "#health-check")
    with page.expect_response("**/health/check/"):
        page.keyboard.press("Enter")
    expect(page.locator("#health-check")).to_be_focused()


def test_a_refused_setting_takes_the_focus(studio: Studio) -> None:
    page = studio.open("/engine/")
    tab_to(page, "#set-custom_base_url")
    page.keyboard.type("ftp://host")
    tab_to(page, "#settings-save", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#set-custom_base_url")).to_be_focused()
    expect(page.locator("#set-custom_base_url")).to_be_in_viewport()


def test_a_wrong_number_in_a_folded_part_is_unfolded(studio: Studio) -> None:
    page = studio.open("/engine/")
    folded = "details:has(#set-days_factual) > summary"
    tab_to(page, folded)
    page.keyboard.press("Enter")
    tab_to(page, "#set-days_factual")
    page.keyboard.type("9999")
    tab_to(page, folded, "Shift+Tab")
    page.keyboard.press("Enter")
    tab_to(page, "#settings-save", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#set-days_factual")).to_be_focused()


def test_a_key_is_made_renewed_and_revoked(studio: Studio) -> None:
    page = studio.open("/engine/", permissions=["clipboard-read", "clipboard-write"])
    page.on("dialog", lambda asked: asked.accept())
    tab_to(page, "#key-add")
    page.keyboard.press("Enter")
    expect(page.locator("#key-name")).to_be_focused()
    page.keyboard.type("app")
    page.keyboard.press("Enter")
    expect(page.locator("#secret")).to_be_focused()
    tab_to(page, "[data-copy]")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    row = page.locator("#engine-keys tr", has_text="app")
    expect(row).to_be_attached()
    page.keyboard.press("Escape")
    expect(page.locator("#key-add")).to_be_focused()
    renew = row.get_by_role("button", name="New secret")
    tab_to(page, f"#{renew.get_attribute('id')}")
    page.keyboard.press("Enter")
    expect(page.locator("#secret")).to_be_focused()
    page.keyboard.press("Escape")
    expect(renew).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("revoked")
    expect(renew).to_be_focused()


def test_running_work_does_not_take_the_focus(studio: Studio, work: Work) -> None:
    page = studio.open("/engine/")
    tab_to(page, "#reindex-all")
    page.keyboard.press("Enter")
    tab_to(page, "#engine-work [id^=act-]")
    with page.expect_response("**/engine/"):
        pass
    expect(page.locator("#engine-work [id^=act-]")).to_be_focused()
    work()
    expect(page.locator("#engine-work [id^=act-]")).to_have_count(0)
    expect(page.locator("#engine-work :focus")).to_have_count(1)


def test_a_compaction_is_run_and_undone(studio: Studio, filled: list[Memory], work: Work) -> None:
    page = studio.open("/engine/")
    tab_to(page, "#compact-old")
    page.keyboard.press("Enter")
    expect(page.locator("#compact-run")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#compact-old")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#compact-run")).to_be_visible()
    tab_to(page, "#compact-run")
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_have_count(0)
    work()
    expect(page.locator("#engine-compactions [id^=undo-]")).to_have_count(1)
    expect(page.locator("#compact-old")).to_be_focused()
    tab_to(page, "#engine-compactions [id^=undo-]")
    page.keyboard.press("Enter")
    expect(page.locator("#engine-compactions")).to_contain_text("undone")
    expect(page.locator("#compact-old")).to_be_focused()
