"""Files put into a vault, many at once; each is taken or refused by itself, with the reason.

Uploads stay in memory: a temporary file would hold the plain text of a sealed vault.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from engine.vault.errors import VaultError
from memory import vault_texts
from memory.errors import ServiceError
from memory.models import Vault
from memory.services.vaults import assets, lifecycle
from memory.views._principal import StudioRequest
from memory.views._render import render_page
from memory.views._vaults import vault_page

PAGE: Final = "memory/vault_ingest.html"
PARTIALS: Final = {"vault-files": "files"}
MOST_FILES: Final = 200


class InMemory(MemoryFileUploadHandler):
    """Keeps a file in memory whatever its size; the server has refused bodies too large."""

    def handle_raw_input(self, *_args: Any, **_options: Any) -> None:
        """Always on."""
        self.activated = True


@vault_page("GET", "POST")
def _ingest(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    vault = lifecycle.get(request.principal, str(uid))
    if not lifecycle.is_unlocked(vault):
        raise VaultError("The vault is locked.", code="vault_locked")
    files = request.FILES.getlist("files") if request.method == "POST" else []
    rows = [_taken(request, vault, file) for file in files[:MOST_FILES]]
    context = {"vault": vault, "files": rows, "most": MOST_FILES}
    if request.method == "POST" and not rows:
        context["problem"] = _("No file was chosen.")
    elif len(files) > MOST_FILES:
        context["problem"] = _("At most %(n)s files at once; the rest was not read.") % {
            "n": MOST_FILES
        }
    status = 422 if "problem" in context and not rows else 200
    return render_page(request, PAGE, context, partials=PARTIALS, status=status)


_protected = csrf_protect(_ingest)


@csrf_exempt
def ingest(request: HttpRequest, uid: uuid.UUID) -> HttpResponseBase:
    """The form for files, and what became of each."""
    # Before anything reads the body, the check of the token among it.
    request.upload_handlers = [InMemory(request)]
    return _protected(request, uid=uid)


def _taken(request: StudioRequest, vault: Vault, file: UploadedFile[bytes]) -> dict[str, Any]:
    name = file.name or ""
    row: dict[str, Any] = {"name": name, "size": file.size or 0}
    try:
        stored = assets.ingest_file(request.principal, str(vault.uid), file.read(), name=name)
    except VaultError as error:
        if error.code == "vault_locked":
            raise
        return row | {"outcome": "refused", "reason": vault_texts.told(error).message}
    except ServiceError as error:
        return row | {"outcome": "refused", "reason": error.message}
    return row | {"outcome": stored.outcome, "stored": stored}
