"""Vaults in the studio: the list, and their life from making to erasing, with grants."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from engine.vault.errors import ConfigInvalid, VaultError
from memory import vault_texts, vault_wiring
from memory.errors import ServiceError
from memory.forms import StudioForm
from memory.models import Vault
from memory.services import access
from memory.services.vaults import grants, lifecycle, overview
from memory.vault_forms import (
    GrantForm,
    NewVaultForm,
    PassphraseForm,
    RulesForm,
    UnlockForm,
    rules_form,
)
from memory.vault_model_forms import VaultModelForm, model_form
from memory.views._notice import Notice
from memory.views._principal import StudioRequest
from memory.views._render import current_owner, owners, render_page, sent
from memory.views._vaults import go, missing_keeper, to_vault, vault_page

LIST: Final = "memory/vaults.html"
ADD: Final = "memory/vault_add.html"
UNLOCK: Final = "memory/vault_unlock.html"
NEW_PASSPHRASE: Final = "memory/vault_passphrase.html"  # noqa: S105 - a template
RULES: Final = "memory/vault_rules.html"
DIALOG: Final = {"dialog": "form"}
SECRETS: Final = ("passphrase", "recovery_key")


@vault_page("GET")
def index(request: StudioRequest) -> HttpResponse:
    """Every vault, with its state."""
    rows = overview.list_all(request.principal, current_owner(request))
    return render_page(request, LIST, {"rows": rows, "missing_keeper": missing_keeper()})


@vault_page("GET")
def unavailable(_request: StudioRequest) -> HttpResponse:
    """What is shown when vaultd broke off in the middle of a request."""
    raise VaultError("The process that keeps the keys broke off.", code="vaultd_unavailable")


@vault_page("GET", "POST")
def add(request: StudioRequest) -> HttpResponse:
    """The form for a new vault; the answer shows the recovery key, which is never shown again."""
    initial = {"owner": current_owner(request) or str(access.default_key().uid)}
    form = NewVaultForm(
        sent(request), owners=owners(request), initial=initial, auto_id="vault-new-%s"
    )
    if request.method == "POST" and form.is_valid():
        try:
            made = lifecycle.create(request.principal, form.draft())
        except (ServiceError, VaultError) as error:
            refuse(form, error)
        else:
            if not made.recovery_key:
                return to_vault(request, made.vault.uid, Notice(_("The vault is made.")))
            return _shown_once(request, made.vault, made.recovery_key)
    status = form.status if form.is_bound else 200
    return render_page(request, ADD, {"form": form}, partials=DIALOG, status=status)


@vault_page("GET", "POST")
def unlock(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Unlock a sealed vault."""
    vault = lifecycle.get(request.principal, str(uid))
    form = UnlockForm(sent(request), auto_id="unlock-%s")
    if request.method == "POST" and form.is_valid():
        values = {name: form.cleaned_data[name] for name in SECRETS}
        try:
            lifecycle.unlock(request.principal, str(uid), **values)
            return to_vault(request, uid, Notice(_("The vault is unlocked.")))
        except (ServiceError, VaultError) as error:
            refuse(form, error)
    status = form.status if form.is_bound else 200
    context = {"form": form, "vault": vault}
    return render_page(request, UNLOCK, context, partials=DIALOG, status=status)


@vault_page("POST")
def lock(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Lock a vault at once."""
    lifecycle.lock(request.principal, str(uid))
    text = _("The vault is locked. Keys, texts and indexes are out of memory.")
    return go(request, reverse("vaults"), Notice(text))


@vault_page("GET")
def watch(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """What an open page asks now and then: nothing to do, or away from what nobody may read now."""
    is_typing = bool(request.GET.get("typed"))
    if lifecycle.watch(request.principal, str(uid), is_used=is_typing):
        return HttpResponse(status=204)
    return to_vault(request, uid, Notice(_("The vault is locked."), level="warn"))


@vault_page("GET", "POST")
def passphrase(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Another passphrase; the answer shows the new recovery key once."""
    vault = lifecycle.get(request.principal, str(uid))
    form = PassphraseForm(sent(request), auto_id="passphrase-%s")
    if request.method == "POST" and form.is_valid():
        values = {name: form.cleaned_data[name] for name in SECRETS}
        new = form.cleaned_data["new_passphrase"]
        try:
            recovery = lifecycle.change_passphrase(request.principal, str(uid), new, **values)
            return _shown_once(request, vault, recovery)
        except (ServiceError, VaultError) as error:
            refuse(form, error)
    status = form.status if form.is_bound else 200
    context = {"form": form, "vault": vault}
    return render_page(request, NEW_PASSPHRASE, context, partials=DIALOG, status=status)


@vault_page("GET", "POST")
def rules(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """The rules of a vault, who else may use it, and its end."""
    vault = lifecycle.get(request.principal, str(uid))
    form = rules_form(vault)
    if request.method == "POST":
        form = RulesForm(request.POST, auto_id="rules-%s")
        if form.is_valid():
            try:
                lifecycle.update(request.principal, str(uid), form.cleaned_data)
                return _to_rules(request, uid, Notice(_("Rules saved.")))
            except ServiceError as error:
                refuse(form, error)
    return _rules_page(request, vault, form)


@vault_page("POST")
def choose_model(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Give a vault a model of its own and a length of its vectors, or the default again."""
    vault = lifecycle.get(request.principal, str(uid))
    form = model_form(request.principal, vault, request.POST)
    if form.is_valid():
        try:
            lifecycle.update(request.principal, str(uid), form.changes())
            text = _("The model is chosen. The next search by meaning embeds the vault anew.")
            return _to_rules(request, uid, Notice(text))
        except ServiceError as error:
            refuse(form, error)
    return _rules_page(request, vault, rules_form(vault), model=form)


@vault_page("POST")
def grant(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Give a key a role, in place of the one it had."""
    vault = lifecycle.get(request.principal, str(uid))
    form = GrantForm(request.POST, keys=owners(request), auto_id="grant-%s")
    if form.is_valid():
        values = form.cleaned_data
        try:
            grants.give(
                request.principal,
                str(uid),
                values["key"],
                values["role"],
                expires_at=values["expires_at"],
            )
            return _to_rules(request, uid, Notice(_("The grant is given.")))
        except ServiceError as error:
            refuse(form, error)
    return _rules_page(request, vault, rules_form(vault), form)


@vault_page("POST")
def revoke(request: StudioRequest, uid: uuid.UUID, key: uuid.UUID) -> HttpResponse:
    """End a grant at once."""
    grants.revoke(request.principal, str(uid), str(key))
    return _to_rules(request, uid, Notice(_("The grant has ended.")))


@vault_page("POST")
def remove(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Erase a vault, when its name was typed."""
    vault = lifecycle.get(request.principal, str(uid))
    if request.POST.get("name", "").strip() != vault.name:
        text = _("Type the vault’s name to erase it.")
        return _rules_page(request, vault, rules_form(vault), erase_error=text)
    lifecycle.delete(request.principal, str(uid))
    return go(request, reverse("vaults"), Notice(_("The vault is erased.")))


def refuse(form: StudioForm, error: ServiceError | VaultError) -> None:
    """Show a refusal at the form, in the reader's language."""
    form.absorb(vault_texts.told(error) if isinstance(error, VaultError) else error)


def _shown_once(request: StudioRequest, vault: Vault, recovery: str) -> HttpResponse:
    return render_page(request, ADD, {"vault": vault, "secret": recovery}, partials=DIALOG)


def _to_rules(request: StudioRequest, uid: uuid.UUID, notice: Notice) -> HttpResponse:
    return go(request, reverse("vault-rules", kwargs={"uid": uid}), notice)


def _model(request: StudioRequest, vault: Vault, form: VaultModelForm | None) -> dict[str, Any]:
    """What the panel of the model shows; nothing where the file of services cannot be read."""
    try:
        services = vault_wiring.services()
        form = form or model_form(request.principal, vault, None)
    except ConfigInvalid as error:
        return {"config_error": str(error)}
    return {"model_form": form, "services": services}


def _rules_page(
    request: StudioRequest,
    vault: Vault,
    form: StudioForm,
    grant_form: GrantForm | None = None,
    erase_error: str = "",
    model: VaultModelForm | None = None,
) -> HttpResponse:
    others = [key for key in owners(request) if key.pk != vault.owner_id]
    forms = (grant_form, model, form)
    bound = next((one for one in forms if one is not None and one.errors), None)
    context: dict[str, Any] = {
        "vault": vault,
        "form": form,
        "grant_form": grant_form or GrantForm(keys=others, auto_id="grant-%s"),
        "others": others,
        **_model(request, vault, model),
        "grants": grants.list_grants(request.principal, str(vault.uid)),
        "erase_error": erase_error,
    }
    status = bound.status if bound is not None else 422 if erase_error else 200
    return render_page(request, RULES, context, status=status)
