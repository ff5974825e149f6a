"""Who calls: a bearer key, or the signed-in studio session (with CSRF for changes)."""

from __future__ import annotations

from typing import Protocol, cast

from django.conf import settings
from django.http import HttpRequest
from ninja.security import HttpBearer
from ninja.security.apikey import APIKeyCookie

from memory.principal import Principal, studio_user
from memory.services import keys


class BearerKey(HttpBearer):
    """``Authorization: Bearer ms_…``."""

    def authenticate(self, request: HttpRequest, token: str) -> Principal:
        """The principal of the key. Raises ``Unauthorized``."""
        return keys.authenticate(token)


class StudioSession(APIKeyCookie):
    """The session of a signed-in studio user; changes need the CSRF token."""

    param_name = settings.SESSION_COOKIE_NAME

    def _get_key(self, request: HttpRequest) -> str | None:
        # Who brings no session at all is told that a key is needed, not that a token is.
        return super()._get_key(request) if request.user.is_authenticated else None

    def authenticate(self, request: HttpRequest, key: str | None) -> Principal | None:
        """The principal of the session, or None."""
        user = request.user
        if not user.is_authenticated:
            return None
        return studio_user(user.get_username())


class _Authenticated(Protocol):
    """A request that Ninja has authenticated."""

    auth: Principal


def caller(request: HttpRequest) -> Principal:
    """The principal that authentication left on the request."""
    return cast(_Authenticated, request).auth
