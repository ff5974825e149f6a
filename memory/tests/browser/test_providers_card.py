"""The card of the providers, worked by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from engine.providers.spec import ProviderSpec
from engine.testing.fake_models import openai_embeddings
from engine.testing.fake_provider import Answer, Provider, Request, json_answer, serving
from memory.principal import SYSTEM
from memory.services import providers
from memory.tests.browser.conftest import Studio

pytestmark = pytest.mark.browser


@pytest.fixture
def server() -> Iterator[Provider]:
    def respond(request: Request) -> Answer:
        is_list = request.path.endswith("/models")
        return json_answer({"data": []}) if is_list else openai_embeddings(request)

    with serving() as running:
        running.respond = respond
        yield running


def test_one_is_added_tried_and_changed(studio: Studio, server: Provider) -> None:
    page = studio.open("/engine/")
    page.locator("#provider-add").focus()
    page.keyboard.press("Enter")
    kind = page.locator("#provider-kind")
    expect(kind).to_be_focused()
    kind.select_option("voyage")
    expect(page.locator("#provider-name")).to_have_attribute("placeholder", "voyage")
    kind.select_option("mistral")
    expect(page.locator("#provider-name")).to_have_attribute("placeholder", "mistral")
    page.locator("#provider-base_url").fill(f"http://127.0.0.1:{server.port}/v1")
    page.locator("#provider-api_key").fill("key-of-mistral-0123")
    page.keyboard.press("Enter")
    card = page.locator("#engine-providers")
    expect(card.get_by_role("rowheader", name="mistral")).to_be_visible()
    expect(page.locator("#dialog")).not_to_be_visible()
    expect(page.locator("#provider-add")).to_be_focused()
    expect(card).to_contain_text("***0123")

    test = card.get_by_role("button", name="Test")
    test.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#dialog")
    expect(dialog).to_contain_text("0 models")
    expect(dialog).to_contain_text("64 dimensions")
    page.keyboard.press("Escape")
    expect(test).to_be_focused()

    card.get_by_role("link", name="Edit…").press("Enter")
    page.locator("#provider-enabled").uncheck()
    page.locator("#provider-save").press("Enter")
    expect(card.locator(".chip-off")).to_be_visible()
    assert providers.get(SYSTEM, "mistral").key == "key-of-mistral-0123"


def test_they_are_moved_and_removed(studio: Studio) -> None:
    for name in ("first", "second"):
        providers.create(SYSTEM, ProviderSpec(name, "openai"))
    page = studio.open("/engine/")
    card = page.locator("#engine-providers")
    card.get_by_role("button", name="Ask “second” earlier").press("Enter")
    expect(card.locator("tbody th").first).to_contain_text("second")
    page.on("dialog", lambda asked: asked.accept())
    card.get_by_role("button", name="Remove").first.press("Enter")
    expect(card.locator("tbody tr")).to_have_count(1)
    assert [entry.name for entry in providers.list_providers(SYSTEM)] == ["first"]
