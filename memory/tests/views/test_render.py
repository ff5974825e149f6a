"""One view serves the page and its fragments; the server chooses by an allow-list."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string
from django.utils import translation

from memory.templatetags.studio import ago, num, share
from memory.tests.views.conftest import Studio


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"HX-Request": "true", "HX-Target": "memories-main", "HX-Boosted": "true"},
        {
            "HX-Request": "true",
            "HX-Target": "memories-main",
            "HX-History-Restore-Request": "true",
        },
        {"HX-Request": "true", "HX-Target": "somewhere-else"},
    ],
    ids=["plain", "boosted", "history restore", "unknown target"],
)
def test_these_requests_get_the_whole_page(studio: Studio, headers: dict[str, str]) -> None:
    response = studio.get("/", **headers)
    assert "<html" in response.content.decode()


def test_a_known_target_gets_its_fragment_only(studio: Studio) -> None:
    body = studio.text("/", target="memories-main")
    assert "<html" not in body
    assert 'id="memories-main"' in body


def test_a_target_cannot_name_a_partial_outside_the_allow_list(studio: Studio) -> None:
    assert "<html" in studio.text("/", target="peek")


def test_caches_are_told_what_the_answer_depends_on(studio: Studio) -> None:
    vary = studio.get("/")["Vary"]
    assert "HX-Request" in vary
    assert "HX-Target" in vary


def test_a_service_error_is_a_notice_for_htmx(studio: Studio) -> None:
    path = "/memories/00000000-0000-0000-0000-000000000000/revert/1/"
    response = studio.post(path, target="memories-main")
    assert response.status_code == 404
    assert response["HX-Retarget"] == "#notices"
    assert "<html" not in response.content.decode()


def test_a_service_error_is_a_page_without_htmx(studio: Studio) -> None:
    response = studio.post("/memories/00000000-0000-0000-0000-000000000000/revert/1/")
    assert response.status_code == 404
    assert "<html" in response.content.decode()


def test_an_address_that_does_not_exist_has_a_page_of_ours(studio: Studio) -> None:
    response = studio.get("/nothing-here/")
    assert response.status_code == 404
    assert "There is nothing at this address" in response.content.decode()


def test_every_page_carries_its_language_and_theme(studio: Studio) -> None:
    studio.client.cookies["theme"] = "dark"
    studio.client.cookies["memory_studio_language"] = "ja"
    body = studio.text("/engine/")
    assert '<html lang="ja" data-theme="dark">' in body


def test_a_made_up_theme_is_not_echoed(studio: Studio) -> None:
    studio.client.cookies["theme"] = '"><script>'
    assert 'data-theme="auto"' in studio.text("/")


def test_the_page_of_a_crash_needs_no_request() -> None:
    assert "The studio failed" in render_to_string("500.html")


@pytest.mark.parametrize("language", ["en", "ja", "zh-hans"])
def test_numbers_are_grouped_in_thousands_in_every_language(language: str) -> None:
    with translation.override(language):
        assert num(1234567) == "1,234,567"
        assert num(0.12345, 3) == "0.123"
        assert share(0.784).startswith("78.4")


def test_what_is_unknown_is_a_dash() -> None:
    assert [num(None), share(None), ago(None)] == ["–", "–", "–"]
