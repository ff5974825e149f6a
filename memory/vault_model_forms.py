"""The form of a vault's own embedding model: one choice for a model and a length of its vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.forms import StudioForm
from memory.models import Vault
from memory.principal import Principal
from memory.services.vaults import own_models
from memory.services.vaults.own_models import OwnModel
from memory.vault_wiring import Backend

Group = tuple[str, list[tuple[str, str]]]


class ModelSelect(forms.Select):
    """A select whose options in ``not_installed`` cannot be chosen."""

    not_installed: frozenset[str] = frozenset()

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """One option, as templates render it."""
        option = super().create_option(*args, **kwargs)
        if str(option["value"]) in self.not_installed:
            option["attrs"]["disabled"] = True
        return option


class VaultModelForm(StudioForm):
    """``model:dimensions``; no model is the default, no dimensions the model's full length."""

    api_names: ClassVar[Mapping[str, str]] = {
        "embeddingModel": "model",
        "embeddingDim": "model",
    }

    model = forms.ChoiceField(
        label=gettext_lazy("Model and dimensions"), required=False, widget=ModelSelect
    )

    def __init__(
        self, *args: Any, models: Iterable[OwnModel], now: str, default: Backend, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.missing = [model for model in models if not model.is_installed]
        field = cast(forms.ChoiceField, self.fields["model"])
        groups = [_group(model) for model in models]
        known = {value for _title, options in groups for value, _label in options}
        plain = [("", _default(default))]
        if now and now not in known:
            # Chosen by REST: a length of the default, or a model that is not known any more.
            plain.append((now, now.replace(":", " ").strip()))
        field.choices = [*plain, *cast(Any, groups)]
        absent = {value for model in self.missing for value, _label in _group(model)[1]}
        cast(ModelSelect, field.widget).not_installed = frozenset(absent - {now})

    def clean_model(self) -> str:
        """Refuse what a browser shows as not to be chosen."""
        value = str(self.cleaned_data["model"])
        if value in cast(ModelSelect, self.fields["model"].widget).not_installed:
            raise forms.ValidationError(_("This model is not installed here."))
        return value

    def changes(self) -> dict[str, Any]:
        """The choice by the names of the service."""
        model, _colon, length = self.cleaned_data["model"].partition(":")
        return {"embedding_model": model, "embedding_dim": int(length) if length else None}


def model_form(principal: Principal, vault: Vault, data: Any) -> VaultModelForm:
    """The choice as it is, or as it was sent."""
    models = own_models.offered(principal, str(vault.uid))
    full = {model.id: model.dimensions[0] for model in models}
    dim = vault.embedding_dim if vault.embedding_dim != full.get(vault.embedding_model) else None
    now = _value(vault.embedding_model, dim) if vault.embedding_model or dim else ""
    return VaultModelForm(
        data,
        models=models,
        now=now,
        default=own_models.without_own(vault),
        initial={"model": now},
        auto_id="model-%s",
    )


def _value(model: str, dim: int | None) -> str:
    return f"{model}:{dim or ''}"


def _default(backend: Backend) -> str:
    where = backend.host or str(_("this machine"))
    return str(_("Default: %(model)s, %(where)s")) % {"model": backend.model, "where": where}


def _group(model: OwnModel) -> Group:
    title = model.title
    if not model.is_installed:
        title = _("%(model)s: not installed") % {"model": title}
    longest = model.dimensions[0]
    options = [
        (
            _value(model.id, None if dim == longest else dim),
            _("%(model)s · %(n)s dimensions") % {"model": model.id, "n": dim},
        )
        for dim in model.dimensions
    ]
    return title, options
