"""Forms of the tab Engine: settings and Qdrant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, cast

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from memory import backend_secrets
from memory.errors import ServiceError
from memory.forms import StudioForm
from memory.services.drafts import json_problem
from memory.setting_texts import is_endpoint
from memory.stored_settings import (
    MAX_WEIGHT,
    MEMORY_FIELDS,
    QDRANT_FIELDS,
    Field,
    Settings,
)
from memory.templatetags.studio import TYPES

SOURCES: Final = (
    ("auto", gettext_lazy("Automatic: the packaged model unless another is set up")),
    ("transformers", gettext_lazy("Local: a packaged model, no network")),
    ("static", gettext_lazy("Static: a word-table model, fastest")),
    ("remote", gettext_lazy("Remote: a provider, or an address")),
)
MODELS: Final[Mapping[str, Any]] = {
    "multilingual-e5-small": gettext_lazy("multilingual-e5-small: 384 dimensions, best"),
    "use-multilingual": gettext_lazy("Universal Sentence Encoder: 512 dimensions, lighter"),
}
PROTOCOLS: Final = (
    ("compatible", gettext_lazy("OpenAI-compatible")),
    ("gemini", "Gemini"),
    ("cohere", "Cohere"),
    ("voyage", "Voyage"),
    ("jina", "Jina"),
    ("azure", "Azure OpenAI"),
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
RERANKERS: Final = (
    ("none", pgettext_lazy("reranker", "None")),
    ("light", gettext_lazy("Light: words covered, and the phrase")),
    ("late", gettext_lazy("Late interaction: token by token, with the local model")),
    ("cross-encoder", gettext_lazy("Cross-encoder: an installed model reads both texts")),
    ("remote", gettext_lazy("Remote: a rerank service")),
)
RERANK_PROTOCOLS: Final = (
    ("seed", gettext_lazy("Plain: the address as it is given")),
    ("cohere", "Cohere"),
    ("jina", "Jina"),
    ("voyage", "Voyage"),
    ("tei", "Text Embeddings Inference"),
)
FLOORS: Final = (
    ("off", pgettext_lazy("relevance floor", "Off")),
    ("auto", gettext_lazy("As measured for the model")),
    ("number", gettext_lazy("This cosine:")),
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


def _number(label: Any, low: float, high: float, help_text: Any = "") -> forms.FloatField:
    step = {"step": "any", "inputmode": "decimal"}
    return forms.FloatField(
        label=label,
        min_value=low,
        max_value=high,
        required=False,
        help_text=help_text,
        widget=forms.NumberInput(attrs=step),
    )


def _secret(label: Any) -> forms.CharField:
    return _text(label, widget=forms.PasswordInput(attrs={"autocomplete": "off"}))


def _address(label: Any, example: str) -> forms.CharField:
    attrs = {"placeholder": example, "inputmode": "url"}
    return _text(label, widget=forms.TextInput(attrs=attrs))


def _switch(label: Any, help_text: Any = "") -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False, help_text=help_text)


class SettingsForm(StudioForm):
    """The memory settings, by their own names; turned into API names when saved."""

    api_names: ClassVar[Mapping[str, str]] = {
        **{entry.api: entry.name for entry in MEMORY_FIELDS},
        "fusionWeights": "weight_keyword",
        "relevanceFloor": "floor_value",
        "rerankKind": "rerank",
    }

    enabled = _switch(gettext_lazy("Memory on"))
    max_tokens = forms.IntegerField(
        label=gettext_lazy("Token budget"), min_value=0, max_value=16_000
    )
    strategy = forms.ChoiceField(label=gettext_lazy("Strategy"), choices=STRATEGIES)
    fusion = forms.ChoiceField(label=gettext_lazy("Fusion of both lists"), choices=FUSIONS)
    weight_keyword = _number(gettext_lazy("Weight of words"), 0, MAX_WEIGHT)
    weight_vector = _number(gettext_lazy("Weight of meaning"), 0, MAX_WEIGHT)
    recency_weight = _number(gettext_lazy("Recency counts (0 to 1)"), 0, 1)
    use_weight = _number(gettext_lazy("Use counts (0 to 1)"), 0, 1)
    floor = forms.ChoiceField(label=gettext_lazy("Relevance floor"), choices=FLOORS)
    floor_value = _number(gettext_lazy("Cosine (−1 to 1)"), -1, 1)
    rerank = forms.ChoiceField(label=gettext_lazy("Rerank hits"), choices=RERANKERS)
    rerank_protocol = forms.ChoiceField(
        label=gettext_lazy("Kind of service"), choices=RERANK_PROTOCOLS
    )
    rerank_base_url = _address(gettext_lazy("Address of the service"), "https://…/rerank")
    rerank_provider_model = _text(
        gettext_lazy("Rerank model"),
        widget=forms.TextInput(attrs={"list": "rerank-models", "placeholder": "provider/model"}),
    )
    rerank_api_key = _secret(gettext_lazy("API key of the service"))
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
    local_model = forms.ChoiceField(label=gettext_lazy("Local model"))
    transformers_enabled = _switch(gettext_lazy("Allow local transformer models"))
    static_enabled = _switch(gettext_lazy("Allow static models"))
    embedding_provider_model = _text(
        gettext_lazy("Model of a provider"),
        widget=forms.TextInput(attrs={"list": "embedding-models", "placeholder": "provider/model"}),
    )
    custom_protocol = forms.ChoiceField(label=gettext_lazy("Protocol"), choices=PROTOCOLS)
    custom_base_url = _address(gettext_lazy("Address"), "https://…/v1")
    custom_model_id = _text(gettext_lazy("Model name"))
    custom_api_key = _secret(gettext_lazy("API key of the provider"))
    vector_store = forms.ChoiceField(label=gettext_lazy("Vector store"), choices=STORES)
    primary_backend = forms.CharField(label=gettext_lazy("Primary backend"), max_length=80)
    fallback_backends = _text(
        gettext_lazy("Fallback backends"), help_text=gettext_lazy("Names, separated by commas.")
    )
    backend_configs = forms.CharField(
        label=gettext_lazy("Backend configuration (JSON)"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )

    def __init__(
        self, *args: Any, models: Iterable[tuple[str, str]], chosen: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        known = dict(models)
        if chosen:
            known.setdefault(chosen, chosen)
        field = cast(forms.ChoiceField, self.fields["local_model"])
        field.choices = [(name, MODELS.get(name, title)) for name, title in known.items()]

    def absorb(self, error: ServiceError) -> None:
        """What is wrong inside of a configuration stands at its field, with its place."""
        placed = {name.partition(".")[0]: text for name, text in error.fields.items()}
        super().absorb(type(error)(error.message, code=error.code, fields=placed))

    def clean_custom_base_url(self) -> str | None:
        """An http(s) address without user, query or fragment."""
        return _endpoint(self.cleaned_data["custom_base_url"])

    def clean_rerank_base_url(self) -> str | None:
        """The same for the rerank service."""
        return _endpoint(self.cleaned_data["rerank_base_url"])

    def clean(self) -> dict[str, Any]:
        """What one choice asks of another field."""
        values = super().clean() or self.cleaned_data
        is_remote = values.get("rerank") == "remote" and "rerank_base_url" in values
        names_provider = "/" in (values.get("rerank_provider_model") or "")
        if is_remote and not values["rerank_base_url"] and not names_provider:
            message = _("A rerank service needs its address, or a provider/model.")
            self.add_error("rerank_base_url", message)
        if values.get("floor") == "number" and values.get("floor_value", 0) is None:
            self.add_error("floor_value", _("A number is needed."))
        return values

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
        weights = {name: values.pop(f"weight_{name}") for name in ("keyword", "vector")}
        values["fusion_weights"] = {n: w for n, w in weights.items() if w is not None}
        floor, number = values.pop("floor"), values.pop("floor_value")
        values["relevance_floor"] = number if floor == "number" else floor
        kind = values.pop("rerank")
        values["rerank_enabled"] = kind != "none"
        if kind != "none":
            values["rerank_kind"] = kind
        for name in ("recency_weight", "use_weight"):
            values[name] = values[name] or 0.0
        return _api_values(MEMORY_FIELDS, values)


def _endpoint(text: str) -> str | None:
    text = text.strip()
    if not text:
        return None
    if not is_endpoint(text):
        raise forms.ValidationError(
            _("An http or https address without user name, “?” and “#” is needed.")
        )
    return text


class QdrantForm(StudioForm):
    """Where Qdrant is. Enabling it makes it the vector store."""

    api_names: ClassVar[Mapping[str, str]] = {entry.api: entry.name for entry in QDRANT_FIELDS}

    qdrant_enabled = _switch(
        gettext_lazy("Use Qdrant"),
        gettext_lazy("Searches ask it first; what is there is copied to it in the background."),
    )
    qdrant_host = _text(
        gettext_lazy("Host"),
        help_text=gettext_lazy("A name, an address, or a URL; https:// for TLS."),
    )
    qdrant_port = forms.IntegerField(label=gettext_lazy("Port"), min_value=1, max_value=65_535)
    qdrant_collection = forms.CharField(
        label=gettext_lazy("Collection"),
        max_length=200,
        help_text=gettext_lazy("An alias of the live collection gets this name."),
    )
    qdrant_embedding_model = forms.CharField(
        label=gettext_lazy("Embedding model"),
        max_length=200,
        help_text=gettext_lazy("Kept for other clients: vectors are those of every store here."),
    )
    qdrant_quantization = forms.ChoiceField(
        label=gettext_lazy("Quantization"), choices=QUANTIZATIONS
    )
    qdrant_api_key = _secret(gettext_lazy("API key"))
    qdrant_forget_key = _switch(gettext_lazy("Remove the stored key"))

    def changes(self) -> dict[str, Any]:
        """The cleaned fields by their API names; an untouched secret is left as it is."""
        values = dict(self.cleaned_data)
        forgets = values.pop("qdrant_forget_key")
        changes = _api_values(QDRANT_FIELDS, values)
        # An empty key removes it; an empty host is a host that is not set.
        changes["host"] = changes["host"] or ""
        return changes | {"apiKey": ""} if forgets else changes


def settings_form(settings: Settings, models: Iterable[tuple[str, str]]) -> SettingsForm:
    """A form that shows the settings in force. ``models`` are the installed ones to choose from."""
    initial = _initial(MEMORY_FIELDS, settings)
    initial |= {f"days_{kind}": days for kind, days in settings.retention_by_type.items()}
    initial |= {f"weight_{name}": f"{w:g}" for name, w in settings.fusion_weights.items()}
    floor = settings.relevance_floor
    is_word = isinstance(floor, str)
    initial |= {
        "rerank": settings.reranker,
        "floor": floor if is_word else "number",
        "floor_value": None if is_word else floor,
    }
    return SettingsForm(
        initial=initial, auto_id="set-%s", models=models, chosen=settings.local_model
    )


def qdrant_form(settings: Settings) -> QdrantForm:
    """A form that shows where Qdrant is; that a key is stored, never the key."""
    form = QdrantForm(initial=_initial(QDRANT_FIELDS, settings), auto_id="set-%s")
    if settings.qdrant_api_key:
        field = form.fields["qdrant_api_key"]
        field.widget.attrs["placeholder"] = _("stored; leave empty to keep it")
    else:
        del form.fields["qdrant_forget_key"]
    return form


def _initial(fields: Iterable[Field], settings: Settings) -> dict[str, Any]:
    initial: dict[str, Any] = {}
    for entry in fields:
        value = getattr(settings, entry.name)
        if entry.kind == "texts":
            initial[entry.name] = ", ".join(value)
        elif entry.kind == "map":
            value = backend_secrets.shown(value)
            text = json.dumps(value, ensure_ascii=False, indent=2)
            initial[entry.name] = text if value else ""
        elif entry.kind == "fraction":
            initial[entry.name] = f"{value:g}"
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
