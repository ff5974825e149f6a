"""Forms around access: API keys, the studio user's password, signing in."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.forms import StudioForm, moment_field
from memory.principal import SCOPES


class KeyForm(StudioForm):
    """A new API key."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        widget=forms.TextInput(attrs={"placeholder": "my-app", "autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        choices=(
            ("read", gettext_lazy("read: list, get, retrieve")),
            ("write", gettext_lazy("write: its own memories")),
            ("chat", gettext_lazy("chat: the gateway")),
            ("manage", gettext_lazy("manage: settings, keys, other owners")),
        ),
        widget=forms.CheckboxSelectMultiple,
        initial=SCOPES[:3],
    )
    expires_at = moment_field()


class PasswordForm(StudioForm):
    """A new password, twice."""

    password = forms.CharField(
        label=gettext_lazy("New password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label=gettext_lazy("Again"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        """Both are the same."""
        values = super().clean() or self.cleaned_data
        if values.get("password") and values.get("again") and values["password"] != values["again"]:
            self.add_error("again", _("The two passwords differ."))
        return values


class SignInForm(StudioForm):
    """User name and password."""

    username = forms.CharField(
        label=gettext_lazy("User name"),
        initial="studio",
        widget=forms.TextInput(attrs={"autocomplete": "username"}),
    )
    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
