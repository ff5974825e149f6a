"""A vault as an encrypted file in the studio: taken out, and read in as a new vault."""

from __future__ import annotations

import io
import uuid
from typing import Final

from django.http import HttpResponse
from django.utils.translation import gettext as _

from engine.vault.errors import VaultError
from memory.errors import ServiceError
from memory.services.vaults import lifecycle, parcels
from memory.services.vaults.parcels import Destination
from memory.vault_forms import ExportForm, ImportForm
from memory.views._notice import Notice
from memory.views._principal import StudioRequest
from memory.views._render import render_page, sent
from memory.views._vaults import to_vault, vault_page
from memory.views.vaults import ADD, DIALOG, refuse

PAGE: Final = "memory/vault_parcel.html"


@vault_page("GET", "POST")
def export(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """The form for a passphrase of the file, and by POST the file."""
    vault = lifecycle.get(request.principal, str(uid))
    form = ExportForm(sent(request), auto_id="export-%s")
    if request.method == "POST" and form.is_valid():
        file = io.BytesIO()
        try:
            parcels.write(request.principal, str(uid), file, form.cleaned_data["passphrase"])
        except VaultError as error:
            if error.code == "vault_locked":
                raise
            refuse(form, error)
        else:
            # The name of the vault stays out of it: file names are seen by many.
            name = f'attachment; filename="vault-{str(uid)[:8]}.msvault"'
            return HttpResponse(
                file.getvalue(),
                content_type="application/octet-stream",
                headers={"Content-Disposition": name},
            )
    status = form.status if form.is_bound else 200
    context = {"vault": vault, "form": form}
    return render_page(request, PAGE, context, partials=DIALOG, status=status)


@vault_page("GET", "POST")
def bring_in(request: StudioRequest) -> HttpResponse:
    """Read such a file as a new vault; the answer shows its recovery key once."""
    files = request.FILES if request.method == "POST" else None
    form = ImportForm(sent(request), files, auto_id="import-%s")
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        destination = Destination(name=values["name"], is_open=values["is_open"])
        try:
            done = parcels.read(
                request.principal, values["file"], values["passphrase"], destination
            )
        except (ServiceError, VaultError) as error:
            refuse(form, error)
        else:
            if done.made is None or not done.made.recovery_key:
                return to_vault(request, done.vault.uid, Notice(_("The vault is read in.")))
            context = {"vault": done.vault, "secret": done.made.recovery_key}
            return render_page(request, ADD, context, partials=DIALOG)
    status = form.status if form.is_bound else 200
    return render_page(request, PAGE, {"form": form}, partials=DIALOG, status=status)
