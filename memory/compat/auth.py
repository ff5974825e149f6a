"""Who calls: a key of ours, in whichever header the client of another system puts it."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja.security.base import AuthBase

from memory.errors import Unauthorized
from memory.principal import Principal
from memory.services import access, keys


class AnyHeaderKey(AuthBase):
    """``Authorization: Token|Bearer ms_…``, or ``X-Api-Key: ms_…``; never a session.

    These protocols know no other owners, so the caller acts for itself only, whatever its scopes.
    """

    openapi_type = "apiKey"

    def __call__(self, request: HttpRequest) -> Principal:
        """The principal of the key. Raises ``Unauthorized``."""
        principal = keys.authenticate(_secret(request))
        if principal.owner is None:
            raise Unauthorized(_("The API key is not valid."))
        return access.for_itself(principal)


def _secret(request: HttpRequest) -> str:
    scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() in ("token", "bearer"):
        return secret.strip()
    return request.headers.get("X-Api-Key", "").strip()
