"""The tab Playground, every control of it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from memory.principal import Principal
from memory.tests.browser.conftest import Studio
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def filled(alice: Principal, bob: Principal, remember: Remember, work: Work) -> None:
    """Memories of two keys, with vectors."""
    remember(alice, "Alice likes green tea in the morning", key="tea", session_id="s-1")
    remember(alice, "Alice went to Kyoto in April", key="kyoto", type="episodic")
    remember(alice, "Alice keeps a garden with beans and peas " * 4, key="garden")
    remember(bob, "Bob likes green apples", key="apples")
    work()


def test_a_query_is_simulated_by_keyboard_and_kept_in_the_address(studio: Studio) -> None:
    page = studio.open("/playground/")
    page.keyboard.press("/")
    expect(page.locator("#play-q")).to_be_focused()
    page.keyboard.type("green tea")
    page.keyboard.press("Enter")
    expect(page.locator(".hit").first).to_contain_text("green tea in the morning")
    expect(page.locator(".ran")).to_contain_text("hybrid")
    expect(page).to_have_url(re.compile(r"q=green(\+|%20)tea&mode=hybrid"))
    page.reload()
    expect(page.locator(".hit").first).to_contain_text("green tea in the morning")
    expect(page.locator("#play-q")).to_have_value("green tea")


def test_every_strategy_runs_when_it_is_chosen(studio: Studio) -> None:
    page = studio.open("/playground/?q=green+tea")
    for label, tier in (
        ("Keyword", "keyword"),
        ("Semantic", "vector"),
        ("Recent: newest first", "recent"),
        ("Hybrid: words and meaning", "hybrid"),
    ):
        page.get_by_label(label, exact=True).check()
        expect(page.locator(".ran dd").first).to_have_text(tier)


def test_match_session_limit_and_key_narrow_the_result(studio: Studio) -> None:
    page = studio.open("/playground/?q=green+apples&mode=keyword")
    expect(page.locator(".hit")).to_have_count(2)
    page.get_by_label("Must hold").select_option("all")
    expect(page.locator(".hit")).to_have_count(1)
    page.get_by_label("Must hold").select_option("any")
    expect(page.locator(".hit")).to_have_count(2)
    page.get_by_label("Session").select_option("s-1")
    expect(page.locator(".hit")).to_have_count(1)
    page.get_by_label("Session").select_option("")
    page.get_by_label("At most (hits)").fill("1")
    page.get_by_label("At most (hits)").blur()
    expect(page.locator(".hit")).to_have_count(1)
    page.get_by_label("At most (hits)").fill("20")
    page.get_by_label("Key", exact=True).select_option(label="alice")
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".bench-form")).to_contain_text("Searches the memories of alice")


def test_the_budget_is_a_slider_and_a_number(studio: Studio) -> None:
    page = studio.open("/playground/?q=alice&mode=keyword")
    number, slider = page.locator("#play-budget"), page.locator("#play-slider")
    number.fill("20")
    number.blur()
    expect(page.get_by_role("heading", name="Out of budget")).to_be_visible()
    slider.focus()
    page.keyboard.press("End")
    expect(number).to_have_value("16000")
    expect(page.get_by_role("heading", name="Out of budget")).to_have_count(0)


def test_the_trace_unfolds_and_stays_so(studio: Studio) -> None:
    page = studio.open("/playground/?q=alice&mode=hybrid&limit=1")
    trace = page.locator(".trace-table")
    expect(trace).to_be_hidden()
    page.get_by_text("What each stage did to").click()
    expect(trace).to_contain_text("beyond the limit")
    page.get_by_role("button", name="Simulate").click()
    expect(trace).to_be_visible()


def test_hits_are_walked_and_opened_by_keyboard(studio: Studio) -> None:
    page = studio.open("/playground/?q=green+tea+morning&mode=keyword")
    page.keyboard.press("j")
    expect(page.locator(".hit").first.get_by_role("link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#peek-title")).to_have_text("tea")


def test_what_cannot_be_asked_is_said_in_place(studio: Studio) -> None:
    page = studio.open("/playground/")
    page.locator("#play-q").fill("x" * 1100)
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_role("alert")).to_contain_text("longer than 1,024 bytes")


def test_an_expected_memory_is_asked_for_and_explained_in_place(studio: Studio) -> None:
    page = studio.open("/playground/?q=green+tea&mode=keyword")
    page.locator("#play-memory").fill("kyoto")
    page.locator("#play-memory").press("Enter")
    expect(page.locator(".why-not")).to_contain_text("It holds none of the query's words.")
    expect(page).to_have_url(re.compile(r"memory=kyoto"))
    expect(page.locator("#play-memory")).to_be_focused()
    page.locator("#play-q").fill("Kyoto")
    page.get_by_role("button", name="Simulate").click()
    expect(page.locator(".why-not")).to_contain_text("It was found: hit 1.")
    page.locator("#play-memory").fill("alice")
    page.get_by_role("button", name="Why not?").click()
    page.locator(".expected").get_by_role("link", name="garden").click()
    expect(page.locator(".why-not")).to_contain_text("garden")


def test_a_memorys_panel_asks_why_it_was_not_found(studio: Studio) -> None:
    page = studio.open("/")
    page.get_by_role("link", name="kyoto", exact=True).click()
    page.get_by_role("link", name="Why not found?").click()
    expect(page.get_by_text("Type the query that should have found it")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("green tea")
    page.get_by_label("Keyword", exact=True).check()
    expect(page.locator(".why-not")).to_contain_text("lost at: lists")


def test_a_budget_out_of_bounds_is_said_in_place(studio: Studio) -> None:
    page = studio.open("/playground/?q=alice&mode=keyword")
    page.locator("#play-budget").fill("17000")
    page.locator("#play-budget").blur()
    expect(page.get_by_role("alert")).to_contain_text("16000")
    page.locator("#play-budget").fill("0")
    page.locator("#play-budget").blur()
    expect(page.get_by_role("heading", name="The token budget is 0")).to_be_visible()


def test_the_cut_of_the_words_unfolds_and_stays_so(studio: Studio) -> None:
    page = studio.open("/playground/?q=what+is+Node.js")
    expect(page.locator(".cut-groups")).to_be_hidden()
    page.get_by_text("How the words were cut").click()
    expect(page.locator(".cut-code-whole")).to_contain_text("Node.js")
    page.get_by_role("button", name="Simulate").click()
    expect(page.locator(".cut-groups")).to_be_visible()


def test_nothing_found_says_what_to_try(studio: Studio) -> None:
    page = studio.open("/playground/?q=zebra&mode=keyword")
    expect(page.get_by_text("No memory answers this")).to_be_visible()
