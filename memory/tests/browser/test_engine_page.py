"""The tab Engine, every control of it; and compaction with its job."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from memory.clock import now
from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.services import settings as settings_service
from memory.tests.browser.conftest import Studio
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def filled(alice: Principal, remember: Remember, work: Work) -> None:
    """Three memories with vectors, two of them old."""
    then = now() - timedelta(days=40)
    remember(alice, "likes tea", key="tea")
    remember(alice, "old fact one.", key="old:1", created_at=then)
    remember(alice, "old fact two.", key="old:2", created_at=then)
    work()


def test_a_reindex_shows_its_progress_until_it_is_done(studio: Studio, work: Work) -> None:
    page = studio.open("/engine/")
    page.get_by_role("button", name="Reindex everything").click()
    area = page.locator("#engine-work")
    expect(area.get_by_role("button", name="Cancel")).to_be_visible()
    expect(area.locator(".job-progress progress")).to_be_visible()
    work()
    expect(area.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(area).to_contain_text("100.0 %")
    polled: list[str] = []
    page.on("request", lambda request: polled.append(request.url))
    page.wait_for_timeout(1500)
    assert polled == []


def test_a_job_is_cancelled_and_started_again(studio: Studio, work: Work) -> None:
    page = studio.open("/engine/")
    page.get_by_role("button", name="Reindex what changed").click()
    area = page.locator("#engine-work")
    area.get_by_role("button", name="Cancel").click()
    area.get_by_role("button", name="Retry").click()
    expect(area.get_by_role("button", name="Cancel")).to_be_visible()
    work()
    expect(area.get_by_role("button", name="Cancel")).to_have_count(0)
    area.get_by_role("link", name="Reindex").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reindex")


def test_each_card_has_one_action(studio: Studio, work: Work) -> None:
    page = studio.open("/engine/")
    for name, field in (
        ("Choose source", "#set-embedding_source"),
        ("Choose store", "#set-vector_store"),
    ):
        page.get_by_role("link", name=name).click()
        expect(page.locator(field)).to_be_focused()
    for place, field in enumerate(("#set-fusion", "#set-rerank", "#set-qdrant_enabled")):
        page.get_by_role("link", name="Configure").nth(place).click()
        expect(page.locator(field)).to_be_focused()
    page.get_by_role("button", name="Rebuild everything").click()
    expect(page.locator("#engine-work").get_by_role("button", name="Cancel")).to_be_visible()
    work()


def test_settings_are_saved_in_place(studio: Studio) -> None:
    page = studio.open("/engine/")
    form = page.locator("#engine-settings")
    form.get_by_label("Memory on").check()
    form.get_by_label("Token budget").fill("1500")
    form.get_by_label("Strategy").select_option("semantic")
    form.get_by_label("Local model").select_option("use-multilingual")
    form.get_by_label("Embedding source").select_option("transformers")
    form.get_by_label("Vector store").select_option("in-process")
    form.get_by_text("Other retention by type").click()
    form.get_by_label("episodic").fill("7")
    form.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Settings saved.")).to_be_visible()
    expect(form).to_contain_text("up to 1,500 extra tokens")
    saved = settings_service.get()
    assert (saved.enabled, saved.max_tokens, saved.strategy) == (True, 1500, "semantic")
    assert saved.retention_by_type == {"episodic": 7}


def test_a_setting_that_is_refused_says_so_at_its_field(studio: Studio) -> None:
    page = studio.open("/engine/")
    form = page.locator("#engine-settings")
    form.get_by_label("Address", exact=True).fill("ftp://host")
    form.get_by_role("button", name="Save settings").click()
    expect(form.get_by_role("alert")).to_contain_text("Nothing was saved")
    expect(form.get_by_label("Address", exact=True)).to_have_attribute("aria-invalid", "true")


def test_a_reranker_is_chosen_and_its_card_says_what_is_missing(studio: Studio) -> None:
    page = studio.open("/engine/")
    form = page.locator("#engine-settings")
    form.get_by_label("Rerank hits").select_option("remote")
    form.get_by_role("button", name="Save settings").click()
    address = form.get_by_label("Address of the service")
    expect(address).to_have_attribute("aria-invalid", "true")
    expect(address).to_be_focused()
    form.get_by_label("Rerank hits").select_option("cross-encoder")
    form.get_by_label("Relevance floor").select_option("number")
    form.get_by_label("Cosine").fill("0.3")
    form.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Settings saved.")).to_be_visible()
    card = page.locator(".card", has=page.get_by_role("heading", name="Rerank"))
    expect(card).to_contain_text("No cross-encoder is installed")
    assert settings_service.get().relevance_floor == 0.3


def test_qdrant_settings_are_saved(studio: Studio) -> None:
    page = studio.open("/engine/")
    form = page.locator("#engine-qdrant")
    form.get_by_label("Host").fill("qdrant.internal")
    form.get_by_role("button", name="Save Qdrant settings").click()
    expect(page.get_by_text("Qdrant settings saved.")).to_be_visible()
    expect(form.get_by_label("Host")).to_have_value("qdrant.internal")
    form.get_by_label("Use Qdrant").check()
    form.get_by_role("button", name="Save Qdrant settings").click()
    card = page.locator(".card", has=page.get_by_role("heading", name="Qdrant"))
    expect(card).not_to_contain_text("Qdrant is switched off.")


def test_a_key_is_made_copied_and_revoked(studio: Studio) -> None:
    page = studio.open("/engine/", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("link", name="New key…").click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_label("Name").fill("app")
    dialog.get_by_label("manage:").check()
    dialog.get_by_role("button", name="Create key").click()
    secret = dialog.get_by_label("Secret").input_value()
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    dialog.get_by_role("link", name="Done").click()
    row = page.locator("#engine-keys tr", has_text="app")
    expect(row).to_contain_text("read, write, chat, manage")
    page.once("dialog", lambda asked: asked.accept())
    row.get_by_role("button", name="New secret").click()
    expect(dialog.get_by_label("Secret")).not_to_have_value(secret)
    dialog.get_by_role("link", name="Done").click()
    page.once("dialog", lambda asked: asked.dismiss())
    row.get_by_role("button", name="Revoke").click()
    assert ApiKey.objects.get(name="app").revoked_at is None
    page.once("dialog", lambda asked: asked.accept())
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Its memories stay.")).to_be_visible()
    expect(row).to_contain_text("revoked")


def test_a_password_is_set(studio: Studio) -> None:
    page = studio.open("/engine/")
    page.get_by_label("New password").fill("correct horse battery")
    page.get_by_label("Again").fill("correct horse battery")
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_text("Password set.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Engine")


def test_old_memories_are_compacted_and_come_back(studio: Studio, work: Work) -> None:
    page = studio.open()
    page.get_by_role("link", name="Compact old…").click()
    dialog = page.locator("dialog[open]")
    expect(dialog.locator(".exact")).to_contain_text("old fact one.")
    dialog.get_by_label("By budget").check()
    expect(dialog.get_by_label("Token budget")).to_have_value("4000")
    dialog.get_by_label("By age").check()
    dialog.get_by_label("Older than (days)").fill("50")
    dialog.get_by_label("Older than (days)").blur()
    expect(dialog.get_by_text("Nothing to compact")).to_be_visible()
    dialog.get_by_label("Older than (days)").fill("30")
    dialog.get_by_label("Older than (days)").blur()
    dialog.get_by_role("button", name="Compact now").click()
    expect(dialog).to_have_count(0)
    expect(page.locator("#notices progress")).to_be_visible()
    work()
    expect(page.locator("[data-row]")).to_have_count(2)
    page.locator("#notices").get_by_role("button", name="Undo").click()
    expect(page.get_by_text("2 memories are back")).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(3)


def test_a_compaction_is_undone_from_the_engine(studio: Studio, work: Work) -> None:
    page = studio.open("/engine/")
    page.locator("#engine-compactions").get_by_role("link", name="Compact old…").click()
    page.locator("dialog[open]").get_by_role("button", name="Compact now").click()
    expect(page.locator("#notices progress")).to_be_visible()
    work()
    area = page.locator("#engine-compactions")
    area.get_by_role("button", name="Undo").click()
    expect(area).to_contain_text("undone")
    assert not Memory.objects.filter(archived_at__isnull=False).exists()
