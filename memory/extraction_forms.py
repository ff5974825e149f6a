"""Forms of extraction in the studio: its settings, a turn to try, an item of the inbox."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.utils.translation import gettext_lazy

from memory.extraction_settings import DAILY_TOKENS, EXTRACTION_FIELDS, ExtractionSettings
from memory.forms import RowForm, StudioForm

ROLES: Final = (
    ("user", gettext_lazy("The user")),
    ("assistant", gettext_lazy("The assistant")),
)


class TurnForm(StudioForm):
    """A turn of a chat to extract from."""

    api_names: ClassVar = {"sessionId": "session"}

    text = forms.CharField(
        label=gettext_lazy("What was said"),
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    role = forms.ChoiceField(label=gettext_lazy("Who said it"), choices=ROLES, initial="user")


class ItemForm(RowForm):
    """The text and type that an item of the inbox is accepted with."""


class ExtractionForm(StudioForm):
    """The settings of extraction."""

    api_names: ClassVar = {entry.api: entry.name for entry in EXTRACTION_FIELDS}

    is_on = forms.BooleanField(
        label=gettext_lazy("Learn from what users say in chats"), required=False
    )
    reads_replies = forms.BooleanField(
        label=gettext_lazy("Also from what the model answers about them"), required=False
    )
    model = forms.CharField(
        label=gettext_lazy("Model beside the rules"),
        required=False,
        max_length=300,
        help_text=gettext_lazy("provider/model; empty: rules alone, nothing leaves the machine."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    daily_tokens = forms.IntegerField(
        label=gettext_lazy("Tokens for it, of each key and day"),
        min_value=DAILY_TOKENS[0],
        max_value=DAILY_TOKENS[1],
    )

    def changes(self) -> dict[str, Any]:
        """The cleaned fields by their API names."""
        return {entry.api: self.cleaned_data[entry.name] for entry in EXTRACTION_FIELDS}


def extraction_form(chosen: ExtractionSettings, data: Any = None) -> ExtractionForm:
    """A form that shows the settings in force."""
    initial = {entry.name: getattr(chosen, entry.name) for entry in EXTRACTION_FIELDS}
    return ExtractionForm(data, initial=initial, auto_id="extraction-%s")
