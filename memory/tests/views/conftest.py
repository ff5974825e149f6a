"""A signed-in browser without JavaScript, and the same with htmx."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from memory.services import signin


class Studio:
    """A signed-in client. ``target`` makes a request one of htmx, for that element."""

    def __init__(self) -> None:
        self.client = Client()
        self.client.force_login(User.objects.get(username=signin.USERNAME))

    def get(self, path: str, *, target: str = "", **headers: str) -> Any:
        """GET a page, or the fragment for a target."""
        return self.client.get(path, headers=_headers(target, "") | headers)

    def post(
        self, path: str, data: dict[str, Any] | None = None, *, target: str = "", at: str = "/"
    ) -> Any:
        """POST a form from the page ``at``."""
        return self.client.post(path, data or {}, headers=_headers(target, at))

    def text(self, path: str, *, target: str = "") -> str:
        """The body of a page that must be fine."""
        response = self.get(path, target=target)
        assert response.status_code == 200, response.content.decode()[:500]
        return str(response.content.decode())


def _headers(target: str, at: str) -> dict[str, str]:
    if not target:
        return {}
    headers = {"HX-Request": "true", "HX-Target": target}
    return headers | ({"HX-Current-URL": f"http://testserver{at}"} if at else {})


@pytest.fixture
def studio(first_start: None) -> Studio:
    """A signed-in studio user."""
    cache.clear()
    return Studio()
