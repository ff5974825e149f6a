"""Forms of the life of a vault: made, opened, given other rules or another passphrase, shared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from django import forms
from django.utils.translation import gettext_lazy, pgettext_lazy

from memory.forms import StudioForm, moment_field
from memory.models import ApiKey, Vault
from memory.services.vaults.lifecycle import MAX_NAME, VaultDraft

ROLES: Final = (
    ("reader", pgettext_lazy("role in a vault", "reader: searches and asks")),
    ("writer", pgettext_lazy("role in a vault", "writer: also adds and changes")),
    ("manager", pgettext_lazy("role in a vault", "manager: also rules and grants")),
)
SEALED: Final = (
    ("sealed", gettext_lazy("Sealed: encrypted under a passphrase")),
    ("open", gettext_lazy("Open: kept like memories are")),
)


NAMES: Final[Mapping[str, str]] = {"autoLockMinutes": "auto_lock_minutes"}


def secret_field(label: Any, autocomplete: str, **options: Any) -> forms.CharField:
    """A passphrase: never sent back to the page."""
    widget = forms.PasswordInput(attrs={"autocomplete": autocomplete, "spellcheck": "false"})
    return forms.CharField(
        label=label, max_length=1024, strip=False, required=False, widget=widget, **options
    )


def _minutes() -> forms.IntegerField:
    return forms.IntegerField(
        label=gettext_lazy("Locks itself after (minutes unused)"),
        help_text=gettext_lazy("0: never."),
        min_value=0,
        max_value=24 * 60,
        initial=15,
    )


class NewVaultForm(StudioForm):
    """A vault to make."""

    api_names = NAMES

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    owner = forms.ChoiceField(label=gettext_lazy("Owner"))
    kind = forms.ChoiceField(
        label=gettext_lazy("Kind"), choices=SEALED, widget=forms.RadioSelect, initial="sealed"
    )
    passphrase = secret_field(
        gettext_lazy("Passphrase"),
        "new-password",
        help_text=gettext_lazy("For a sealed vault; nobody can recover it for you."),
    )
    auto_lock_minutes = _minutes()
    is_device_only = forms.BooleanField(
        label=gettext_lazy("Device only: nothing of it is sent to another machine"), required=False
    )

    def __init__(self, *args: Any, owners: Iterable[ApiKey], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ChoiceField, self.fields["owner"]).choices = [
            (str(key.uid), key.name) for key in owners
        ]

    def draft(self) -> VaultDraft:
        """The cleaned fields as a draft."""
        values = self.cleaned_data
        is_sealed = values["kind"] == "sealed"
        return VaultDraft(
            values["name"],
            is_sealed=is_sealed,
            passphrase=values["passphrase"] if is_sealed else "",
            is_device_only=values["is_device_only"],
            auto_lock_minutes=values["auto_lock_minutes"],
            owner=values["owner"],
        )


class UnlockForm(StudioForm):
    """What opens a vault: one of the two."""

    passphrase = secret_field(gettext_lazy("Passphrase"), "current-password")
    recovery_key = secret_field(gettext_lazy("or the recovery key"), "off")


class PassphraseForm(UnlockForm):
    """Another passphrase."""

    new_passphrase = secret_field(gettext_lazy("New passphrase"), "new-password")


class ExportForm(StudioForm):
    """What a file of a vault is opened by."""

    passphrase = secret_field(gettext_lazy("Passphrase of the file"), "new-password")


class ImportForm(StudioForm):
    """A file of a vault, and the new vault that it becomes."""

    file = forms.FileField(
        label=gettext_lazy("File"), widget=forms.FileInput(attrs={"class": "drop"})
    )
    passphrase = secret_field(gettext_lazy("Passphrase of the file"), "off")
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME,
        required=False,
        help_text=gettext_lazy("Blank: as in the file."),
    )
    is_open = forms.BooleanField(
        label=gettext_lazy("Keep it open, not sealed under this passphrase"), required=False
    )


class RulesForm(StudioForm):
    """The rules of a vault."""

    api_names = NAMES

    name = forms.CharField(label=gettext_lazy("Name"), max_length=MAX_NAME)
    auto_lock_minutes = _minutes()
    is_device_only = forms.BooleanField(
        label=gettext_lazy("Device only: nothing of it is sent to another machine"), required=False
    )


class GrantForm(StudioForm):
    """A role for a key."""

    key = forms.ChoiceField(label=pgettext_lazy("API key", "Key"))
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLES)
    expires_at = moment_field()

    def __init__(self, *args: Any, keys: Iterable[ApiKey], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ChoiceField, self.fields["key"]).choices = [
            (str(key.uid), key.name) for key in keys
        ]


def rules_form(vault: Vault) -> RulesForm:
    """The rules as they are."""
    names = ("name", "auto_lock_minutes", "is_device_only")
    return RulesForm(initial={name: getattr(vault, name) for name in names}, auto_id="rules-%s")
