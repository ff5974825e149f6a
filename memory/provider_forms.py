"""The form of a provider: added from the catalogue, or changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from engine.errors import EngineError
from engine.providers import catalogue
from engine.providers.catalogue import Service
from engine.providers.spec import MAX_NAME, MAX_URL, MAX_VARIABLE, ProviderSpec
from memory.forms import StudioForm
from memory.provider_table import Entry

PROTOCOLS: Final = {
    "openai": "OpenAI",
    "azure": "Azure OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "cohere": "Cohere",
    "voyage": "Voyage",
    "jina": "Jina",
    "tei": "Text Embeddings Inference",
}
PLAIN: Final = {"autocomplete": "off", "spellcheck": "false"}


class ProviderForm(StudioForm):
    """Every field of a provider. What is left blank is that of the kind."""

    api_names: ClassVar[Mapping[str, str]] = {
        "baseUrl": "base_url",
        "apiKey": "api_key",
        "apiKeyEnv": "key_variable",
    }

    kind = forms.ChoiceField(label=gettext_lazy("Kind"))
    name = forms.CharField(
        label=gettext_lazy("Name"),
        required=False,
        max_length=MAX_NAME,
        help_text=gettext_lazy("Stands before the slash of provider/model."),
        widget=forms.TextInput(attrs=PLAIN),
    )
    base_url = forms.CharField(
        label=gettext_lazy("Address"),
        required=False,
        max_length=MAX_URL,
        widget=forms.TextInput(attrs={**PLAIN, "inputmode": "url"}),
    )
    api_key = forms.CharField(
        label=gettext_lazy("API key"),
        required=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    key_variable = forms.CharField(
        label=gettext_lazy("or the variable it is in"),
        required=False,
        max_length=MAX_VARIABLE,
        widget=forms.TextInput(attrs=PLAIN),
    )
    forget_key = forms.BooleanField(label=gettext_lazy("Remove the stored key"), required=False)
    models = forms.CharField(
        label=gettext_lazy("Chat models, one a line"),
        required=False,
        help_text=gettext_lazy("Ids, or patterns with *. Blank: those that the kind is known for."),
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
    )
    protocol = forms.ChoiceField(label=gettext_lazy("Protocol"), required=False)
    enabled = forms.BooleanField(label=gettext_lazy("In use"), required=False, initial=True)
    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, entry: Entry | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = [(service.id, service.title) for service in catalogue.services()]
        cast(forms.ChoiceField, self.fields["kind"]).choices = kinds
        own = ("", str(pgettext_lazy("protocol", "That of the kind")))
        cast(forms.ChoiceField, self.fields["protocol"]).choices = [own, *PROTOCOLS.items()]
        if entry is None or not entry.spec.api_key:
            del self.fields["forget_key"]
        else:
            self._hint("api_key", _("stored; leave empty to keep it"))
        service = self._service()
        if service is not None:
            self._suggest(service)

    def _service(self) -> Service | None:
        try:
            return catalogue.find(str(self["kind"].value() or catalogue.COMPATIBLE))
        except EngineError:
            return None

    def _suggest(self, service: Service) -> None:
        """What the kind would say where a field is left blank."""
        self._hint("name", service.id if service.id != catalogue.COMPATIBLE else "my-server")
        self._hint("base_url", service.base_url or "https://…/v1")
        if not service.variable:
            return
        self._hint("key_variable", service.variable)
        if os.environ.get(service.variable):
            told = _("%(name)s is set where the studio runs.") % {"name": service.variable}
            self.fields["key_variable"].help_text = told

    def _hint(self, name: str, text: str) -> None:
        self.fields[name].widget.attrs.setdefault("placeholder", text)

    def spec(self) -> ProviderSpec:
        """The provider that a new form describes."""
        values = self.values()
        name = values.pop("name") or values["kind"]
        return ProviderSpec(name=name, **values)

    def changes(self) -> dict[str, Any]:
        """What a form of a known provider changes; an untouched key stays."""
        values = self.values()
        if not values["name"]:
            del values["name"]
        if not values["api_key"]:
            del values["api_key"]
        if self.cleaned_data.get("forget_key"):
            values["api_key"] = ""
        return values

    def values(self) -> dict[str, Any]:
        """The fields by the names of ``ProviderSpec``."""
        values = {
            name: self.cleaned_data[name].strip()
            for name in ("kind", "name", "base_url", "api_key", "key_variable", "protocol")
        }
        lines = (line.strip() for line in self.cleaned_data["models"].splitlines())
        models = tuple(dict.fromkeys(line for line in lines if line))
        return {**values, "models": models, "enabled": self.cleaned_data["enabled"]}


def initial_of(entry: Entry) -> dict[str, Any]:
    """What a form of a known provider shows; never its key."""
    spec = entry.spec
    return {
        "kind": spec.kind,
        "name": spec.name,
        "base_url": spec.base_url,
        "key_variable": spec.key_variable,
        "models": "\n".join(spec.models),
        "protocol": spec.protocol,
        "enabled": spec.enabled,
        "revision": entry.revision,
    }
