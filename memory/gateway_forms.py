"""Forms of the gateway in the studio: its settings, one key, a preview."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.utils.translation import gettext_lazy, pgettext_lazy

from memory.chat_settings import (
    BUDGET_MS,
    CHAT_FIELDS,
    IDLE_SECONDS,
    LIMIT,
    TRACE_DAYS,
    ChatSettings,
)
from memory.forms import StudioForm
from memory.models import ApiKey
from memory.services.gateway.meter import MAX_DAILY

STYLES: Final = (
    ("block", gettext_lazy("Block: fenced, numbered and dated notes")),
    ("classic", gettext_lazy("Classic: plain text, as the first system")),
)
SCOPES: Final = (
    ("session", gettext_lazy("Of the session that the chat names")),
    ("apiKey", gettext_lazy("Of the key")),
    ("global", gettext_lazy("Of the key, and shared ones")),
)
INJECTIONS: Final = (
    ("inherit", pgettext_lazy("injection of a key", "as the settings say")),
    ("on", pgettext_lazy("injection of a key", "on")),
    ("off", pgettext_lazy("injection of a key", "off")),
)
PROTOCOLS: Final = (
    ("chat", gettext_lazy("OpenAI, chat completions")),
    ("responses", gettext_lazy("OpenAI, responses")),
    ("messages", gettext_lazy("Anthropic, messages")),
)


class ChatSettingsForm(StudioForm):
    """The settings of chats."""

    api_names: ClassVar = {entry.api: entry.name for entry in CHAT_FIELDS}

    injects = forms.BooleanField(
        label=gettext_lazy("Put memories into chats of keys that say nothing themselves"),
        required=False,
    )
    style = forms.ChoiceField(label=gettext_lazy("Form of what is put in"), choices=STYLES)
    scope = forms.ChoiceField(label=gettext_lazy("Whose memories"), choices=SCOPES)
    limit = forms.IntegerField(
        label=gettext_lazy("At most (memories)"), min_value=LIMIT[0], max_value=LIMIT[1]
    )
    budget_ms = forms.IntegerField(
        label=gettext_lazy("Memory may hold a chat up (ms)"),
        min_value=BUDGET_MS[0],
        max_value=BUDGET_MS[1],
    )
    idle_seconds = forms.IntegerField(
        label=gettext_lazy("A provider may be silent (seconds)"),
        min_value=IDLE_SECONDS[0],
        max_value=IDLE_SECONDS[1],
    )
    trace_days = forms.IntegerField(
        label=gettext_lazy("Keep receipts (days)"),
        min_value=TRACE_DAYS[0],
        max_value=TRACE_DAYS[1],
    )
    keeps_text = forms.BooleanField(
        label=gettext_lazy("Receipts hold what was said, put in and answered"), required=False
    )

    def changes(self) -> dict[str, Any]:
        """The cleaned fields under their API names."""
        return {entry.api: self.cleaned_data[entry.name] for entry in CHAT_FIELDS}


class KeyInjectionForm(StudioForm):
    """Whether the chats of one key are given memories, and what these may cost."""

    api_names: ClassVar = {"dailyTokens": "daily_tokens"}

    injection = forms.ChoiceField(label=gettext_lazy("Memories in chats"), choices=INJECTIONS)
    daily_tokens = forms.IntegerField(
        label=gettext_lazy("Tokens a day at most"),
        required=False,
        min_value=0,
        max_value=MAX_DAILY,
        widget=forms.NumberInput(attrs={"placeholder": "∞"}),
    )


class PreviewForm(StudioForm):
    """A chat to preview."""

    q = forms.CharField(widget=forms.HiddenInput)
    session = forms.CharField(widget=forms.HiddenInput, required=False, max_length=200)
    protocol = forms.ChoiceField(label=gettext_lazy("Protocol"), choices=PROTOCOLS)
    model = forms.CharField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "gpt-5", "autocomplete": "off"}),
    )


def chat_settings_form(chosen: ChatSettings) -> ChatSettingsForm:
    """A form that shows the settings in force."""
    initial = {entry.name: getattr(chosen, entry.name) for entry in CHAT_FIELDS}
    return ChatSettingsForm(initial=initial, auto_id="chat-%s")


def key_form(key: ApiKey, data: Any = None) -> KeyInjectionForm:
    """The form of one key."""
    initial = {"injection": key.injection, "daily_tokens": key.daily_tokens}
    return KeyInjectionForm(data, initial=initial, auto_id=f"key-{key.uid}-%s")


def request_form(query: str, session: str) -> PreviewForm:
    """The form that asks for the request of a query."""
    return PreviewForm(initial={"q": query, "session": session}, auto_id="request-%s")
