"""mem0's platform: who the key is, its project, and what only a hosted service has."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router

from memory.api.auth import caller
from memory.compat.errors import NotOffered
from memory.errors import NotFound
from memory.models import ApiKey
from memory.services.mem0.entities import owner_of

router = Router()

ORGANISATION: Final = "memory-studio"
_PROJECT: Final = "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/"
_WEBHOOKS: Final = "/api/v1/webhooks"


@router.get("/v1/ping/")
def ping(request: HttpRequest) -> dict[str, Any]:
    """Who the key is: to these clients, a project of its own."""
    owner = owner_of(caller(request))
    return {
        "status": "ok",
        "org_id": ORGANISATION,
        "project_id": str(owner.uid),
        "user_email": None,
    }


@router.get(_PROJECT)
def project(
    request: HttpRequest, org_id: str, project_id: str, fields: Query[list[str] | None] = None
) -> dict[str, Any]:
    """The project that a key is."""
    owner = _own_project(request, org_id, project_id)
    shown: dict[str, Any] = {
        "project_id": str(owner.uid),
        "org_id": ORGANISATION,
        "name": owner.name,
        "custom_instructions": None,
        "agent_custom_instructions": None,
        "custom_categories": [],
        "multilingual": True,
    }
    return {name: shown.get(name) for name in fields} if fields else shown


@router.get(f"{_PROJECT}members/")
def members(request: HttpRequest, org_id: str, project_id: str) -> dict[str, Any]:
    """The one member of a project: its key."""
    owner = _own_project(request, org_id, project_id)
    return {"members": [{"user_id": str(owner.uid), "username": owner.name, "role": "OWNER"}]}


def _own_project(request: HttpRequest, org_id: str, project_id: str) -> ApiKey:
    owner = owner_of(caller(request))
    if (org_id, project_id) != (ORGANISATION, str(owner.uid)):
        raise NotFound(_("There is nothing at this address."))
    return owner


@router.api_operation(["PATCH", "DELETE"], _PROJECT)
@router.api_operation(["POST", "PUT", "DELETE"], f"{_PROJECT}members/")
def no_project_changes(request: HttpRequest, org_id: str, project_id: str) -> None:
    """Projects are keys, which the studio makes. Raises ``NotOffered``."""
    raise NotOffered(_("A project is an API key here: it is changed in the studio."))


@router.post("/api/v1/orgs/organizations/{org_id}/projects/")
def no_projects(request: HttpRequest, org_id: str) -> None:
    """The same of new ones. Raises ``NotOffered``."""
    raise NotOffered(_("A project is an API key here: it is changed in the studio."))


@router.api_operation(["GET", "POST"], f"{_WEBHOOKS}/projects/{{project_id}}/")
def no_webhooks(request: HttpRequest, project_id: str) -> None:
    """Webhooks are not set up from here. Raises ``NotOffered``."""
    raise NotOffered(_("Webhooks cannot be set up with this client."))


@router.api_operation(["PUT", "DELETE"], f"{_WEBHOOKS}/{{webhook_id}}/")
def no_webhook(request: HttpRequest, webhook_id: str) -> None:
    """The same of one. Raises ``NotOffered``."""
    raise NotOffered(_("Webhooks cannot be set up with this client."))


@router.post("/v1/exports/")
@router.post("/v1/exports/get/")
@router.post("/v1/summary/")
def no_exports(request: HttpRequest) -> None:
    """Exports by a schema, and summaries, are written by a language model. Raises
    ``NotOffered``."""
    raise NotOffered(
        _("This needs a language model. Memories as they are: GET /api/memory, or Export.")
    )
