"""Choosing and trying the services of vaults in a browser: by keyboard, in both themes, narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.testing.fake_provider import Answer, Provider
from memory.principal import SYSTEM, Principal
from memory.services.vaults import choosing
from memory.tests.browser.conftest import Studio
from memory.tests.browser.test_accessibility import violations
from memory.tests.browser.test_keyboard import tab_to, unseen_stops
from memory.tests.vault_lab import lab, running
from memory.tests.vaults import configure, opened

pytestmark = pytest.mark.browser
PATH = "/vaults/services/"
FILE = """
[rag.generation]
protocol = "gemini"
url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
model = "gemini-2.5-flash"
api_key_env = "GEMINI_API_KEY"
json_mode = "json_schema"
"""


@pytest.fixture
def server(settings: Any, tmp_path: Path, first_start: None) -> Iterator[Provider]:
    with running(settings, tmp_path) as one:
        lab(one)
        yield one


def test_a_service_is_chosen_and_tried_by_keyboard(studio: Studio, server: Provider) -> None:
    page = studio.open("/vaults/")
    tab_to(page, "#vault-services")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Services of vaults")
    tab_to(page, "#services-embedding")
    page.keyboard.type("lab/embedder")
    # Enter saves; it tests nothing.
    page.keyboard.press("Enter")
    expect(page.locator(".notice-list, .toast, [role=status]").first).to_be_attached()
    expect(page.locator("#test-embedding")).to_be_visible()
    assert choosing.get(SYSTEM).kept.embedding == "lab/embedder"
    assert server.requests == []
    tab_to(page, "#test-embedding")
    page.keyboard.press("Enter")
    expect(page.locator("#dialog .chip-on")).to_have_text("works")
    expect(page.locator("#dialog")).to_contain_text("64 dimensions")
    server.respond = lambda request: Answer(401)
    tab_to(page, "#test-again")
    page.keyboard.press("Enter")
    expect(page.locator("#dialog .chip-error")).to_have_text("failed")
    expect(page.locator("#dialog")).to_contain_text("auth_failed")
    expect(page.locator("#dialog")).to_contain_text("HTTP 401")
    page.keyboard.press("Escape")
    expect(page.locator("#test-embedding")).to_be_focused()
    assert unseen_stops(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_accessible_with_all_that_it_can_show(
    theme: str, studio: Studio, server: Provider, settings: Any, tmp_path: Path
) -> None:
    configure(settings, tmp_path, FILE)
    changes = {"embeddingProviderModel": "lab/e", "rerankProviderModel": "lab/r"}
    choosing.update(SYSTEM, changes)
    page = studio.open(PATH, color_scheme=theme, bypass_csp=True)
    expect(page.locator("text=[rag.generation]")).to_be_visible()
    assert page.locator("#services-generation").count() == 0
    assert violations(page) == []
    page.locator("#test-embedding").click()
    expect(page.locator("#dialog .chip-on")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("language", ["en", "ja", "zh-CN"])
def test_nothing_is_cut_off_in_a_narrow_window(
    language: str, studio: Studio, server: Provider, settings: Any, tmp_path: Path
) -> None:
    configure(settings, tmp_path, FILE)
    choosing.update(SYSTEM, {"embeddingProviderModel": f"lab/{'long' * 30}"})
    page = studio.open(PATH, viewport={"width": 320, "height": 640}, locale=language)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.locator("#services-save").is_visible()


def test_without_scripts_a_service_is_chosen_and_tried(studio: Studio, server: Provider) -> None:
    page = studio.open(PATH, java_script_enabled=False)
    page.fill("#services-rerank", "nobody/ranker")
    page.click("#services-save")
    expect(page.locator("#services-rerank_error")).to_be_visible()
    page.fill("#services-rerank", "lab/ranker")
    page.click("#services-save")
    page.click("#test-rerank")
    expect(page.locator(".chip-error")).to_be_visible()
    page.click("text=Done")
    expect(page.locator("#services-rerank")).to_have_value("lab/ranker")


def test_a_vault_is_given_a_model_of_its_own_by_keyboard(
    studio: Studio, server: Provider, alice: Principal
) -> None:
    vault = opened(alice)
    page = studio.open(f"/vaults/{vault.uid}/rules/")
    tab_to(page, "#model-model")
    page.keyboard.type("use-multilingual")
    tab_to(page, "#model-save")
    page.keyboard.press("Enter")
    expect(page.locator("#model-model")).to_have_value("use-multilingual:")
    vault.refresh_from_db()
    assert vault.embedding_model == "use-multilingual"
    assert unseen_stops(page) == []
    page = studio.open(
        f"/vaults/{vault.uid}/rules/", viewport={"width": 320, "height": 640}, locale="ja"
    )
    page.locator(".model-missing summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
