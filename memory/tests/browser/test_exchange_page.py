"""Import with its check, and export, in the browser: by mouse, and by keyboard alone."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from memory.models import Memory, UploadPart
from memory.principal import Principal
from memory.tests.browser.conftest import Studio
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def filled(alice: Principal, remember: Remember, work: Work) -> None:
    """Three memories."""
    remember(alice, "likes tea", key="tea")
    remember(alice, "likes ink", key="ink", type="semantic")
    remember(alice, "lives in Lisbon", key="place")
    work()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a new memory, one that is there, and one without a text."""
    path = tmp_path / "memories.json"
    rows = [
        {"key": "new", "content": "new fact"},
        {"key": "tea", "content": "likes tea"},
        {"content": ""},
    ]
    path.write_text(json.dumps(rows))
    return path


def test_a_file_is_checked_and_then_imported_with_a_report(
    studio: Studio, work: Work, file: Path
) -> None:
    page = studio.open()
    page.get_by_role("link", name="Import…").click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_label("File").set_input_files(file)
    dialog.get_by_label("Owner").select_option(label="alice")
    dialog.get_by_role("button", name="Check the file").click()
    expect(dialog.locator(".counts")).to_have_text("New 1 Updated 0 The same 1 Skipped 1")
    expect(dialog).to_contain_text("memories.json · JSON: our export, or a list")
    dialog.get_by_text("Why some were skipped").click()
    expect(dialog).to_contain_text("Record 3: There is no text in it.")
    assert Memory.objects.count() == 3
    dialog.get_by_role("button", name="Import 1 memory").click()
    expect(dialog).to_have_count(0)
    work()
    notices = page.locator("#notices")
    expect(notices).to_contain_text("1 imported, 0 updated, 1 the same, 1 skipped")
    notices.get_by_text("Why some were skipped").click()
    expect(notices).to_contain_text("Record 3:")
    expect(page.locator("[data-row]")).to_have_count(4)
    expect(page.locator("#memories-stats")).to_contain_text("4")


def test_a_large_file_shows_its_progress_and_can_be_stopped(
    studio: Studio, work: Work, tmp_path: Path
) -> None:
    path = tmp_path / "large.jsonl"
    path.write_text(
        "".join(json.dumps({"content": "x" * 900, "key": str(n)}) + "\n" for n in range(600))
    )
    page = studio.open()
    for stop in (True, False):
        page.get_by_role("link", name="Import…").click()
        dialog = page.locator("dialog[open]")
        dialog.get_by_label("File").set_input_files(path)
        dialog.get_by_role("button", name="Check the file").click()
        expect(dialog.get_by_text("Looking at large.jsonl")).to_be_visible()
        if stop:
            dialog.get_by_role("button", name="Cancel").click()
            expect(dialog).to_have_count(0)
            assert not UploadPart.objects.exists()
    work()
    expect(dialog.get_by_role("button", name="Import 600 memories")).to_be_visible()
    assert Memory.objects.count() == 3


def _press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_an_import_needs_no_mouse(studio: Studio, work: Work, file: Path) -> None:
    page = studio.open()
    page.locator("#export").focus()
    _press(page, "Tab", "Enter")
    dialog = page.locator("dialog[open]")
    expect(dialog.get_by_label("File")).to_be_focused()
    dialog.get_by_label("File").set_input_files(file)
    _press(page, "Tab", "Tab", "Tab", "Tab")
    expect(dialog.get_by_role("button", name="Check the file")).to_be_focused()
    _press(page, "Enter")
    expect(dialog.get_by_role("button", name="Import 2 memories")).to_be_focused()
    _press(page, "Enter")
    expect(dialog).to_have_count(0)
    work()
    expect(page.locator("#notices")).to_contain_text("2 imported")
    _press(page, "Tab")
    assert page.evaluate("document.activeElement !== document.body")


def test_everything_is_exported_as_a_file(studio: Studio) -> None:
    page = studio.open()
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="JSON", exact=True).click()
    assert waiting.value.suggested_filename.startswith("memory-export-")
    document = json.loads(Path(waiting.value.path()).read_text())
    assert len(document["memories"]) == 3
    expect(page.locator("details.menu-text")).not_to_have_attribute("open", "")


def test_an_export_holds_what_the_filters_show_by_keyboard(studio: Studio) -> None:
    page = studio.open()
    page.locator("#q").fill("likes")
    expect(page.locator("[data-row]")).to_have_count(2)
    page.locator("#export").focus()
    _press(page, "Enter", "Tab", "Tab", "Tab", "Tab")
    with page.expect_download() as waiting:
        _press(page, "Enter")
    archive = zipfile.ZipFile(io.BytesIO(Path(waiting.value.path()).read_bytes()))
    assert sorted(archive.namelist()) == ["alice/ink.md", "alice/tea.md"]
    page.locator("#export").focus()
    _press(page, "Enter", "Escape")
    expect(page.locator("#export")).to_be_focused()
    expect(page.get_by_role("link", name="JSON", exact=True)).to_be_hidden()
