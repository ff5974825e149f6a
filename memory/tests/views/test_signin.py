"""Who may enter: strangers are sent to sign in, a link works once, a password works always."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern

from memory.services import signin
from memory.tests.views.conftest import Studio
from memory.urls import urlpatterns

OPEN = {"signin", "signin-link", "signout", "metrics"}
"""Pages that a stranger may ask for; `/metrics` has a rule of its own."""


@pytest.fixture
def stranger(first_start: None) -> Client:
    """Someone who is not signed in."""
    return Client()


def address(pattern: URLPattern) -> str:
    path = str(pattern.pattern)
    path = re.sub(r"<uuid:\w+>", "00000000-0000-0000-0000-000000000000", path)
    return "/" + path.replace("<int:revision>", "1").replace("<str:compaction_id>", "x")


@pytest.mark.parametrize(
    "pattern", [p for p in urlpatterns if p.name not in OPEN], ids=lambda p: str(p.pattern)
)
def test_nothing_answers_a_stranger(stranger: Client, pattern: URLPattern) -> None:
    for response in (stranger.get(address(pattern)), stranger.post(address(pattern))):
        assert response.status_code == 302
        assert response["Location"].startswith("/signin/")


def test_a_fragment_asked_for_by_a_stranger_leads_the_browser_to_sign_in(
    stranger: Client,
) -> None:
    response = stranger.get("/", headers={"HX-Request": "true", "HX-Target": "memories-main"})
    assert response["HX-Redirect"].startswith("/signin/")
    assert response.content == b""


def test_a_link_signs_in_once(stranger: Client) -> None:
    link = signin.sign_in_link("http://testserver")
    assert link is not None
    assert stranger.get(link)["Location"] == "/"
    page = stranger.get("/").content.decode()
    assert "Set a password in Engine" in page
    again = Client().get(link)
    assert again.status_code == 410
    assert "works once" in again.content.decode()


def test_without_a_password_the_page_tells_where_the_link_is(stranger: Client) -> None:
    body = stranger.get("/signin/").content.decode()
    assert "printed a sign-in link in the terminal" in body
    assert 'type="password"' not in body


@pytest.fixture
def password(first_start: None) -> str:
    """The studio user's password."""
    user = User.objects.get(username=signin.USERNAME)
    user.set_password("correct horse battery")
    user.save()
    return "correct horse battery"


def test_a_password_signs_in_and_leads_to_where_one_was_going(
    stranger: Client, password: str
) -> None:
    data = {"username": "studio", "password": password, "next": "/engine/"}
    response = stranger.post("/signin/", data)
    assert (response.status_code, response["Location"]) == (303, "/engine/")


def test_a_wrong_password_says_no_more_than_that(stranger: Client, password: str) -> None:
    response = stranger.post("/signin/", {"username": "studio", "password": "wrong"})
    assert response.status_code == 422
    assert "do not match" in response.content.decode()


def test_signing_in_never_leads_to_another_site(stranger: Client, password: str) -> None:
    data = {"username": "studio", "password": password, "next": "https://evil.example/"}
    assert stranger.post("/signin/", data)["Location"] == "/"


def test_signing_out_ends_the_session(studio: Studio) -> None:
    assert studio.post("/signout/")["Location"] == "/signin/"
    assert studio.get("/").status_code == 302


def test_signing_out_needs_a_form(studio: Studio) -> None:
    assert studio.get("/signout/").status_code == 405


def test_forms_from_another_site_are_refused(first_start: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username=signin.USERNAME))
    response = client.post("/memories/bulk/", {"action": "delete"})
    assert response.status_code == 403
    assert "The form was too old" in response.content.decode()


def test_preferences_are_cookies_with_known_values(studio: Studio) -> None:
    response = studio.post("/preferences/", {"theme": "dark", "keys": "off", "how": "x"})
    assert response.cookies["theme"].value == "dark"
    assert response.cookies["keys"].value == "off"
    assert "how" not in response.cookies
    assert 'data-keys="off"' in studio.text("/")


def test_the_list_of_keys_is_a_page_too(studio: Studio) -> None:
    assert "Go to Playground" in studio.text("/shortcuts/")
