"""Forms of what lies in a vault: an asset, a search, a question."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from engine.types import Match, Mode
from memory.forms import StudioForm
from memory.services.vaults.assets import AssetDraft, Stored
from memory.services.vaults.searching import SearchRequest

KINDS: Final = (
    ("card", gettext_lazy("knowledge card: searched")),
    ("memory", gettext_lazy("memory: searched")),
    ("private", gettext_lazy("private content: never searched or sent")),
    ("credential", gettext_lazy("credential: never searched or sent")),
    ("file", gettext_lazy("file: never searched or sent")),
)
MODES: Final = (
    ("hybrid", pgettext_lazy("search mode", "hybrid")),
    ("keyword", pgettext_lazy("search mode", "keyword")),
    ("vector", pgettext_lazy("search mode", "vector")),
)
MATCHES: Final = (
    ("any", pgettext_lazy("match", "any word")),
    ("all", pgettext_lazy("match", "all words")),
    ("phrase", pgettext_lazy("match", "phrase")),
)
VIEWS: Final = (
    ("chunks", pgettext_lazy("results of a vault", "chunks")),
    ("grouped", pgettext_lazy("results of a vault", "documents")),
)
LIMIT: Final = 8


class TextForm(StudioForm):
    """What an asset says."""

    api_names: ClassVar = {"meta": "metadata"}

    title = forms.CharField(
        label=gettext_lazy("Title"),
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    body = forms.CharField(
        label=gettext_lazy("Text"), strip=False, widget=forms.Textarea(attrs={"rows": 12})
    )
    metadata = forms.CharField(
        label=gettext_lazy("Metadata (JSON)"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
    )

    def clean_body(self) -> str:
        """The text with the line ends of text files: browsers send those of the network."""
        return str(self.cleaned_data["body"]).replace("\r\n", "\n")

    def clean_metadata(self) -> dict[str, Any]:
        """The metadata as an object; an empty field is an empty object."""
        text = str(self.cleaned_data["metadata"]).strip()
        try:
            value = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            raise forms.ValidationError(_("This is not valid JSON.")) from None
        if not isinstance(value, dict):
            raise forms.ValidationError(_('A JSON object is needed, such as {"source": "chat"}.'))
        return value

    def changes(self) -> dict[str, Any]:
        """The cleaned fields by the service's names."""
        values = self.cleaned_data
        return {"title": values["title"], "body": values["body"], "meta": values["metadata"]}


class AssetForm(TextForm):
    """An asset that is there, as it was at a revision."""

    revision = forms.IntegerField(required=False, widget=forms.HiddenInput())

    def may_replace(self, revision: int) -> None:
        """After a stale one the next save is meant: it may replace what is there."""
        self.data = {**dict(self.data.items()), "revision": str(revision)}
        self.add_error(None, _("Save again to replace that text with yours."))


class NewAssetForm(TextForm):
    """An asset to put in."""

    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=KINDS, initial="card")
    field_order = ("title", "kind", "body", "metadata")

    def draft(self) -> AssetDraft:
        """The cleaned fields as a draft."""
        values = self.changes()
        return AssetDraft(
            values["body"],
            title=values["title"],
            kind=self.cleaned_data["kind"],
            meta=values["meta"],
        )


class QuestionForm(StudioForm):
    """A question to a vault. It is only ever sent by POST: no address holds it."""

    api_names: ClassVar = {"query": "q"}

    q = forms.CharField(
        label=gettext_lazy("Question"),
        max_length=1024,
        widget=forms.Textarea(attrs={"rows": 3, "data-submit-enter": "", "spellcheck": "false"}),
    )
    mode = forms.ChoiceField(label=gettext_lazy("Mode"), choices=MODES, initial="hybrid")
    match = forms.ChoiceField(label=gettext_lazy("Match"), choices=MATCHES, initial="any")
    limit = forms.IntegerField(
        label=gettext_lazy("At most"), min_value=1, max_value=100, initial=LIMIT
    )
    cards_only = forms.BooleanField(label=gettext_lazy("Cards only"), required=False)
    rerank = forms.BooleanField(label=gettext_lazy("Rerank"), required=False, initial=True)

    def asked(self, vault: str) -> SearchRequest:
        """The cleaned fields as a search."""
        values = self.cleaned_data
        return SearchRequest(
            vault,
            values["q"],
            Mode(values["mode"]),
            Match(values["match"]),
            values["limit"],
            cards_only=values["cards_only"],
            rerank=values["rerank"],
            grouped=values.get("view") == "grouped",
        )


class SearchForm(QuestionForm):
    """A search of a vault."""

    q = forms.CharField(
        label=gettext_lazy("Search this vault"),
        max_length=1024,
        widget=forms.TextInput(
            attrs={"type": "search", "autocomplete": "off", "aria-keyshortcuts": "/"}
        ),
    )
    view = forms.ChoiceField(label=gettext_lazy("Show"), choices=VIEWS, initial="chunks")


def asset_form(stored: Stored) -> AssetForm:
    """The form of an asset as it is."""
    content = stored.content
    meta = json.dumps(dict(content.meta), ensure_ascii=False) if content.meta else ""
    values: dict[str, Any] = {"title": content.title, "body": content.body, "metadata": meta}
    values["revision"] = stored.asset.revision
    return AssetForm(initial=values, auto_id="asset-%s")
