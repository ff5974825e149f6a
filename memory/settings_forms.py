"""Forms of the tab Engine: settings, Qdrant, API keys, and the studio user's password."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from memory.forms import StudioForm, moment_field
from memory.principal import SCOPES
from memory.services.drafts import json_problem
from memory.stored_settings import MEMORY_FIELDS, QDRANT_FIELDS, Field, Settings, is_endpoint
from memory.templatetags.studio import TYPES

SOURCES: Final = (
    ("auto", gettext_lazy("Automatic: the packaged model unless another is set up")),
    ("transformers", gettext_lazy("Local: a packaged model, no network")),
    ("static", gettext_lazy("Static: a word-table model, fastest")),
    ("remote", gettext_lazy("Remote: an OpenAI-compatible address")),
)
MODELS: Final = (
    ("multilingual-e5-small", gettext_lazy("multilingual-e5-small: 384 dimensions, best")),
    ("use-multilingual", gettext_lazy("Universal Sentence Encoder: 512 dimensions, lighter")),
)
STORES: Final = (
    ("auto", pgettext_lazy("vector store", "Automatic")),
    ("in-process", gettext_lazy("In this process")),
    ("sqlite-vec", "sqlite-vec"),
    ("pgvector", "pgvector"),
    ("qdrant", "Qdrant"),
)
STRATEGIES: Final = (
    ("hybrid", gettext_lazy("Hybrid: words and meaning")),
    ("semantic", gettext_lazy("Semantic")),
    ("recent", gettext_lazy("Recent: newest first")),
)
FUSIONS: Final = (
    ("scores", gettext_lazy("Scores: normalised and added")),
    ("rrf", gettext_lazy("Reciprocal ranks (RRF)")),
)
QUANTIZATIONS: Final = (
    ("none", pgettext_lazy("quantization", "None")),
    ("int8", "int8"),
    ("binary", pgettext_lazy("quantization", "Binary")),
)


def _days(label: Any, *, required: bool = True) -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=1, max_value=365, required=required)


def _text(label: Any, **kwargs: Any) -> forms.CharField:
    return forms.CharField(label=label, required=False, max_length=2048, **kwargs)


def _switch(label: Any, help_text: Any = "") -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False, help_text=help_text)


class SettingsForm(StudioForm):
    """The memory settings, by their own names; turned into API names when saved."""

    api_names: ClassVar[Mapping[str, str]] = {entry.api: entry.name for entry in MEMORY_FIELDS}

    enabled = _switch(gettext_lazy("Memory on"))
    max_tokens = forms.IntegerField(
        label=gettext_lazy("Token budget"), min_value=0, max_value=16_000
    )
    strategy = forms.ChoiceField(label=gettext_lazy("Strategy"), choices=STRATEGIES)
    fusion = forms.ChoiceField(label=gettext_lazy("Fusion of both lists"), choices=FUSIONS)
    retention_days = _days(gettext_lazy("Retention (days)"))
    days_factual = _days(TYPES["factual"], required=False)
    days_episodic = _days(TYPES["episodic"], required=False)
    days_procedural = _days(TYPES["procedural"], required=False)
    days_semantic = _days(TYPES["semantic"], required=False)
    auto_summarize = _switch(gettext_lazy("Compact old memories automatically"))
    skills_enabled = _switch(
        gettext_lazy("Report skills as enabled"),
        gettext_lazy("Kept for clients of the first system; switches nothing here."),
    )
    embedding_source = forms.ChoiceField(label=gettext_lazy("Embedding source"), choices=SOURCES)
    local_model = forms.ChoiceField(label=gettext_lazy("Local model"), choices=MODELS)
    transformers_enabled = _switch(gettext_lazy("Allow local transformer models"))
    static_enabled = _switch(gettext_lazy("Allow static models"))
    embedding_provider_model = _text(gettext_lazy("Provider model"))
    custom_base_url = _text(
        gettext_lazy("Address"),
        widget=forms.TextInput(attrs={"placeholder": "https://…/v1", "inputmode": "url"}),
    )
    custom_model_id = _text(gettext_lazy("Model name"))
    custom_api_key = _text(
        gettext_lazy("API key of the provider"),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    vector_store = forms.ChoiceField(label=gettext_lazy("Vector store"), choices=STORES)
    rerank_enabled = _switch(gettext_lazy("Rerank hits"))
    rerank_provider_model = _text(gettext_lazy("Rerank model"))
    primary_backend = forms.CharField(label=gettext_lazy("Primary backend"), max_length=80)
    fallback_backends = _text(
        gettext_lazy("Fallback backends"), help_text=gettext_lazy("Names, separated by commas.")
    )
    backend_configs = forms.CharField(
        label=gettext_lazy("Backend configuration (JSON)"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )

    def clean_custom_base_url(self) -> str | None:
        """An http(s) address without user, query or fragment."""
        text = str(self.cleaned_data["custom_base_url"]).strip()
        if not text:
            return None
        if not is_endpoint(text):
            raise forms.ValidationError(
                _("An http or https address without user name, “?” and “#” is needed.")
            )
        return text

    def clean_fallback_backends(self) -> list[str]:
        """The names, without blanks."""
        names = str(self.cleaned_data["fallback_backends"]).split(",")
        return [name.strip() for name in names if name.strip()]

    def clean_backend_configs(self) -> dict[str, Any]:
        """A JSON object of objects."""
        text = str(self.cleaned_data["backend_configs"]).strip()
        try:
            value = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            raise forms.ValidationError(_("This is not valid JSON.")) from None
        if not isinstance(value, dict) or not all(isinstance(v, dict) for v in value.values()):
            raise forms.ValidationError(_("A JSON object of objects is needed."))
        if problem := json_problem(value):
            raise forms.ValidationError(problem)
        return value

    def changes(self) -> dict[str, Any]:
        """The cleaned fields by their API names; an untouched secret is left as it is."""
        values = dict(self.cleaned_data)
        days = {kind: values.pop(f"days_{kind}") for kind in TYPES}
        values["retention_by_type"] = {kind: count for kind, count in days.items() if count}
        return _api_values(MEMORY_FIELDS, values)


class QdrantForm(StudioForm):
    """Where Qdrant is. Enabling it makes it the vector store."""

    api_names: ClassVar[Mapping[str, str]] = {entry.api: entry.name for entry in QDRANT_FIELDS}

    qdrant_enabled = _switch(gettext_lazy("Use Qdrant"))
    qdrant_host = _text(gettext_lazy("Host"))
    qdrant_port = forms.IntegerField(label=gettext_lazy("Port"), min_value=1, max_value=65_535)
    qdrant_collection = forms.CharField(label=gettext_lazy("Collection"), max_length=200)
    qdrant_embedding_model = forms.CharField(label=gettext_lazy("Embedding model"), max_length=200)
    qdrant_quantization = forms.ChoiceField(
        label=gettext_lazy("Quantization"), choices=QUANTIZATIONS
    )
    qdrant_api_key = _text(
        gettext_lazy("API key"), widget=forms.PasswordInput(attrs={"autocomplete": "off"})
    )

    def changes(self) -> dict[str, Any]:
        """The cleaned fields by their API names; an untouched secret is left as it is."""
        return _api_values(QDRANT_FIELDS, dict(self.cleaned_data))


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


def settings_form(settings: Settings) -> SettingsForm:
    """A form that shows the settings in force."""
    initial = _initial(MEMORY_FIELDS, settings)
    initial |= {f"days_{kind}": days for kind, days in settings.retention_by_type.items()}
    return SettingsForm(initial=initial, auto_id="set-%s")


def qdrant_form(settings: Settings) -> QdrantForm:
    """A form that shows where Qdrant is."""
    return QdrantForm(initial=_initial(QDRANT_FIELDS, settings), auto_id="set-%s")


def _initial(fields: Iterable[Field], settings: Settings) -> dict[str, Any]:
    initial: dict[str, Any] = {}
    for entry in fields:
        value = getattr(settings, entry.name)
        if entry.kind == "texts":
            initial[entry.name] = ", ".join(value)
        elif entry.kind == "map":
            text = json.dumps(dict(value), ensure_ascii=False, indent=2)
            initial[entry.name] = text if value else ""
        elif entry.kind != "secret":
            initial[entry.name] = value
    return initial


def _api_values(fields: Iterable[Field], values: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for entry in fields:
        if entry.name not in values:
            continue
        value = values[entry.name]
        if entry.kind == "secret" and not value:
            continue
        changes[entry.api] = None if entry.kind == "text" and value == "" else value
    return changes
