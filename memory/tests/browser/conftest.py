"""Pages in Chromium: one browser for the package, one fresh context a test, no console errors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from memory.services import signin

FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TIMEOUT_MS: Final = 10_000
REFUSED: Final = tuple(f"status of {status}" for status in (403, 404, 409, 410, 422))
"""Chromium reports refused forms on the console; the tests that provoke them look at the page."""

Open = Callable[..., Page]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium. Its absence is a failure in CI, else these tests are skipped."""
    path = shutil.which("chromium")
    if path is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("Chromium is not installed (Debian package: chromium)")
    # Playwright keeps an event loop in this thread, which Django takes for asynchronous code.
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Studio:
    """A signed-in user at a browser. ``open`` gives a page; problems are collected."""

    browser: Browser
    url: str
    cookies: list[dict[str, str]]
    contexts: list[BrowserContext] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def open(self, path: str = "/", **options: Any) -> Page:
        """A page in a context of its own; ``options`` are those of the context."""
        options.setdefault("viewport", {"width": 1280, "height": 800})
        options.setdefault("locale", "en")
        context = self.browser.new_context(**options)
        context.set_default_timeout(TIMEOUT_MS)
        context.add_cookies(self.cookies)  # type: ignore[arg-type]
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(self.url + path)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(r in message.text for r in REFUSED):
            self.problems.append(message.text)


@pytest.fixture
def studio(chromium: Browser, live_server: Any, first_start: None) -> Iterator[Studio]:
    """The studio as its user sees it; a console error or warning fails the test."""
    cache.clear()
    client = Client()
    client.force_login(User.objects.get(username=signin.USERNAME))
    name = settings.SESSION_COOKIE_NAME
    url = str(live_server.url)
    cookies = [{"name": name, "value": client.cookies[name].value, "url": url}]
    # The health check of a page must not fall into the middle of a test.
    health = {"working": True, "latency_ms": 1.0, "error": "", "checked_at": None}
    cache.set("studio.health", health)
    user = Studio(chromium, url, cookies)
    yield user
    for context in user.contexts:
        context.close()
    assert user.problems == []
