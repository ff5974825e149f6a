"""The pages of vaults in a browser: by keyboard alone, with many files, without JavaScript."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from memory.models import Vault, VaultAsset
from memory.principal import Principal
from memory.services.vaults import lifecycle
from memory.tests.browser.conftest import Studio
from memory.tests.browser.test_accessibility import violations
from memory.tests.browser.test_keyboard import tab_to, unseen_stops
from memory.tests.vaults import PASSPHRASE, fill, opened, sealed, writer

pytestmark = pytest.mark.browser
FILES: list[Any] = [
    {"name": "a.md", "mimeType": "text/markdown", "buffer": b"# Refunds\n\nSeven days."},
    {"name": "b.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7"},
    {"name": "c.txt", "mimeType": "text/plain", "buffer": "返金は七日以内".encode()},
]
STORED = "JSON.stringify([localStorage, sessionStorage]).toLowerCase()"


def test_a_vault_is_made_filled_searched_and_read_by_keyboard(
    studio: Studio, alice: Principal
) -> None:
    page = studio.open("/")
    for key in ("g", "v"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(r"/vaults/$"))
    page.keyboard.press("n")
    expect(page.locator("#vault-new-name")).to_be_focused()
    page.keyboard.type("notes")
    tab_to(page, "#vault-new-passphrase")
    page.keyboard.type(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.locator("#secret")).to_be_focused()
    tab_to(page, "#vault-done")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("notes")
    page.keyboard.press("n")
    expect(page.locator("#asset-title")).to_be_focused()
    page.keyboard.type("Refund policy")
    tab_to(page, "#asset-body")
    page.keyboard.type("Refunds are paid within seven days.")
    tab_to(page, "#asset-save")
    page.keyboard.press("Enter")
    expect(page.locator("[data-row]")).to_have_count(1)
    _search_and_read(page)
    assert "refund" not in page.evaluate(STORED)


def _search_and_read(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("refunds")
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator("#vault-status .chip")).to_have_text("in memory")
    assert "refunds" not in page.url
    tab_to(page, "#hit-S1")
    page.keyboard.press("Enter")
    expect(page.locator("mark")).to_be_in_viewport()
    expect(page.locator("mark")).to_have_text("Refunds are paid within seven days.")
    page.keyboard.press("e")
    expect(page.locator("#asset-title")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#vault-lock")).to_be_visible()
    tab_to(page, "#vault-lock")
    page.keyboard.press("Enter")
    expect(page.get_by_text("sealed, locked")).to_be_visible()
    tab_to(page, "a[id^=unlock-]")
    page.keyboard.press("Enter")
    expect(page.locator("#unlock-passphrase")).to_be_focused()
    page.keyboard.type("a wrong one")
    page.keyboard.press("Enter")
    expect(page.locator("#unlock-passphrase_error")).to_be_visible()
    expect(page.locator("#unlock-passphrase")).to_be_focused()
    page.keyboard.type(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.get_by_text("The vault is unlocked.")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_answer_shows_its_passage_beside_it(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path, theme: Any
) -> None:
    vault = opened(alice)
    fill(alice, vault)
    with writer(settings, tmp_path):
        page = studio.open(f"/vaults/{vault.uid}/ask/", color_scheme=theme, bypass_csp=True)
        page.keyboard.press("/")
        page.keyboard.type("When are refunds paid?")
        page.keyboard.press("Enter")
        tab_to(page, ".citation")
        assert violations(page) == []
        page.keyboard.press("Enter")
        expect(page.locator("#vault-source mark")).to_contain_text("within seven days")
        expect(page.locator(".citation")).to_be_focused()
        expect(page.locator(".answer")).to_be_in_viewport()
        assert violations(page) == []
        assert unseen_stops(page) == []
        assert page.url.endswith("/ask/") and "refund" not in page.evaluate(STORED)


def test_below_an_answer_the_page_goes_to_the_passage(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    vault = opened(alice)
    fill(alice, vault)
    with writer(settings, tmp_path):
        window = {"width": 360, "height": 640}
        page = studio.open(f"/vaults/{vault.uid}/ask/", viewport=window)
        page.locator("#ask-q").fill("When are refunds paid?")
        page.locator("#ask-run").click()
        page.locator(".citation").click()
        expect(page.locator("#vault-source mark")).to_be_in_viewport()
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 360


def test_an_open_document_is_gone_soon_after_its_vault_was_locked(
    studio: Studio, alice: Principal
) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    card = VaultAsset.objects.filter(kind="card").first()
    assert card is not None
    page = studio.open("/vaults/")
    page.clock.install()
    page.goto(f"{studio.url}/vaults/{vault.uid}/assets/{card.pk}/")
    text = page.locator(".source-text")
    with page.expect_response("**/watch/") as asked:
        page.clock.fast_forward(20_000)
    assert asked.value.status == 204
    expect(text).to_be_visible()
    lifecycle.lock(alice, str(vault.uid))
    page.clock.fast_forward(20_000)
    expect(page.get_by_text("This vault is locked")).to_be_visible()
    expect(text).to_have_count(0)


def test_many_files_are_sent_one_by_one(studio: Studio, alice: Principal) -> None:
    vault = sealed(alice)
    page = studio.open(f"/vaults/{vault.uid}/ingest/", bypass_csp=True)
    page.locator("#files").set_input_files(FILES)
    page.locator("#files-run").click()
    expect(page.locator("#vault-files tbody tr")).to_have_count(3)
    expect(page.locator(".chip-failed")).to_have_count(1)
    expect(page.locator("progress")).to_have_attribute("value", "100")
    expect(page.locator("#files-run")).to_be_enabled()
    assert violations(page) == []
    assert VaultAsset.objects.count() == 2
    lifecycle.lock(alice, str(vault.uid))
    page.locator("#files").set_input_files(FILES[:1])
    page.locator("#files-run").click()
    expect(page.get_by_text("This vault is locked")).to_be_visible()


def test_files_can_be_dropped(studio: Studio, alice: Principal) -> None:
    page = studio.open(f"/vaults/{opened(alice).uid}/ingest/")
    page.evaluate(
        """() => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File(['# Dropped'], 'd.md'));
            const drop = new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true });
            document.querySelector('#files').dispatchEvent(drop);
        }"""
    )
    page.locator("#files-run").click()
    expect(page.locator("#vault-files tbody tr")).to_contain_text("d.md")


def test_reading_and_writing_without_javascript(
    studio: Studio, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    with writer(settings, tmp_path):
        page = studio.open("/vaults/add/", java_script_enabled=False)
        page.locator("#vault-new-name").fill("plain")
        page.locator("#vault-new-passphrase").fill(PASSPHRASE)
        page.locator("#vault-save").click()
        page.locator("#vault-done").click()
        vault = Vault.objects.get(name="plain")
        page.locator("#vault-to-files").click()
        page.locator("#files").set_input_files(FILES)
        page.locator("#files-run").click()
        expect(page.locator("#vault-files tbody tr")).to_have_count(3)
        page.goto(f"{studio.url}/vaults/{vault.uid}/")
        page.locator("#q").fill("seven days")
        page.locator("#vault-run").click()
        page.locator("#hit-S1").click()
        expect(page.locator("mark")).to_contain_text("Seven days.")
        page.goto(f"{studio.url}/vaults/{vault.uid}/ask/")
        page.locator("#ask-q").fill("When are refunds paid?")
        page.locator("#ask-run").click()
        page.locator(".citation").click()
        expect(page.locator("mark")).to_contain_text("Seven days.")
        page.locator("#asset-delete").click()
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("[data-row]")).to_have_count(2)
        page.locator("#vault-lock").click()
        expect(page.get_by_text("sealed, locked")).to_be_visible()


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (320, "dark")])
@pytest.mark.parametrize("rest", ["", "VAULT/", "VAULT/rules/", "VAULT/ask/"])
def test_every_stop_is_seen(
    studio: Studio, alice: Principal, rest: str, width: int, theme: Any
) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    path = "/vaults/" + rest.replace("VAULT", str(vault.uid))
    page = studio.open(path, viewport={"width": width, "height": 640}, color_scheme=theme)
    assert unseen_stops(page) == []
