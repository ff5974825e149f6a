"""The form of the services of vaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from django import forms
from django.utils.translation import gettext_lazy, pgettext_lazy

from engine.vault.config import MAX_DIMENSIONS
from memory.forms import StudioForm
from memory.services.vaults.choosing import FIELDS
from memory.vault_services import ServiceName
from memory.vault_settings import VAULT_FIELDS, VaultSettings

JSON_MODES: Final = (
    ("off", pgettext_lazy("JSON mode", "off: the text of the request asks for it")),
    ("json_object", pgettext_lazy("JSON mode", "json_object: any JSON object")),
    ("json_schema", pgettext_lazy("JSON mode", "json_schema: the shape of an answer")),
)
MOST: Final = 300


def _model(label: Any, choices: str) -> forms.CharField:
    attrs = {
        "list": choices,
        "placeholder": "provider/model",
        "autocomplete": "off",
        "spellcheck": "false",
    }
    return forms.CharField(
        label=label,
        required=False,
        max_length=MOST,
        help_text=gettext_lazy("provider/model; blank: none, nothing leaves the machine."),
        widget=forms.TextInput(attrs=attrs),
    )


class VaultServicesForm(StudioForm):
    """What the studio may choose; what the file decides has no field."""

    api_names: ClassVar[Mapping[str, str]] = {entry.api: entry.name for entry in VAULT_FIELDS}

    embedding = _model(gettext_lazy("Embedding model"), "embedding-models")
    dimensions = forms.IntegerField(
        label=gettext_lazy("Dimensions to ask for"),
        required=False,
        min_value=1,
        max_value=MAX_DIMENSIONS,
        help_text=gettext_lazy("Blank: as many as the model gives."),
    )
    generation = _model(gettext_lazy("Model that writes answers"), "generation-models")
    json_mode = forms.ChoiceField(label=gettext_lazy("Ask for JSON"), choices=JSON_MODES)
    rerank = _model(gettext_lazy("Rerank model"), "rerank-models")
    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, fixed: Collection[ServiceName] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for service in fixed:
            for api in FIELDS[service]:
                del self.fields[self.api_names[api]]

    def changes(self) -> dict[str, Any]:
        """The cleaned fields under their API names."""
        names = {api: name for api, name in self.api_names.items() if name in self.fields}
        return {api: self.cleaned_data[name] for api, name in names.items()}


def services_form(
    kept: VaultSettings, data: Any, fixed: Collection[ServiceName]
) -> VaultServicesForm:
    """The choice as it is, or as it was sent."""
    names = ("embedding", "generation", "json_mode", "rerank", "revision")
    initial = {name: getattr(kept, name) for name in names}
    initial["dimensions"] = kept.dimensions or None
    return VaultServicesForm(data, fixed=fixed, initial=initial, auto_id="services-%s")
