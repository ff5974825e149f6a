"""Forms of the studio: what a browser sends, checked before a service sees it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, cast

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.errors import ServiceError
from memory.models import ApiKey, Memory
from memory.services.drafts import MemoryDraft
from memory.templatetags.studio import IMPORT_FORMATS, TYPES

TYPE_CHOICES: Final = tuple(TYPES.items())
MOMENT_FORMAT: Final = "%Y-%m-%dT%H:%M"


class StudioForm(forms.Form):
    """A form that can show a service's refusal at its fields."""

    api_names: ClassVar[Mapping[str, str]] = {}
    """Names services use for a field, where they differ from the form's."""

    status = 422
    """The status of the answer when the form is refused."""

    def absorb(self, error: ServiceError) -> None:
        """Add a service's refusal: at the fields it names, else to the form as a whole."""
        self.status = error.status
        placed = False
        for name, message in error.fields.items():
            field = self.api_names.get(name, name)
            if field in self.fields:
                self.add_error(field, message)
                placed = True
        if not placed:
            self.add_error(None, error.message)


def _choice(form: forms.Form, name: str) -> forms.ChoiceField:
    return cast(forms.ChoiceField, form.fields[name])


def moment_field() -> forms.DateTimeField:
    """An optional moment that browsers show as a picker."""
    return forms.DateTimeField(
        required=False,
        label=gettext_lazy("Expires"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=MOMENT_FORMAT),
    )


class RowForm(StudioForm):
    """What can be edited inside a table row."""

    content = forms.CharField(
        label=gettext_lazy("Content"),
        widget=forms.Textarea(attrs={"rows": 2, "aria-label": gettext_lazy("Content")}),
    )
    type = forms.ChoiceField(
        label=gettext_lazy("Type"),
        choices=TYPE_CHOICES,
        widget=forms.Select(attrs={"aria-label": gettext_lazy("Type")}),
    )
    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)


class MemoryForm(StudioForm):
    """All fields of a memory that a person may write."""

    api_names: ClassVar[Mapping[str, str]] = {"sessionId": "session_id", "expiresAt": "expires_at"}

    content = forms.CharField(
        label=gettext_lazy("Content"), widget=forms.Textarea(attrs={"rows": 4})
    )
    key = forms.CharField(
        label=gettext_lazy("Key"),
        max_length=500,
        widget=forms.TextInput(attrs={"placeholder": "preference:editor", "autocomplete": "off"}),
    )
    type = forms.ChoiceField(label=gettext_lazy("Type"), choices=TYPE_CHOICES)
    session_id = forms.CharField(label=gettext_lazy("Session"), max_length=200, required=False)
    expires_at = moment_field()
    metadata = forms.CharField(
        label=gettext_lazy("Metadata (JSON)"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )
    is_pinned = forms.BooleanField(label=gettext_lazy("Pinned"), required=False)
    is_shared = forms.BooleanField(label=gettext_lazy("Shared with all keys"), required=False)
    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = timezone.get_current_timezone_name()
        self.fields["expires_at"].label = _("Expires (%(zone)s)") % {"zone": zone}

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
        """The cleaned fields by their model names."""
        return {name: value for name, value in self.cleaned_data.items() if name != "revision"}


class NewMemoryForm(MemoryForm):
    """A memory to add, with its owner."""

    owner = forms.ChoiceField(label=gettext_lazy("Owner"))
    field_order = (
        "key",
        "content",
        "type",
        "owner",
        "session_id",
        "expires_at",
        "metadata",
        "is_pinned",
        "is_shared",
    )

    def __init__(self, *args: Any, owners: Iterable[ApiKey], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choice(self, "owner").choices = [(str(key.uid), key.name) for key in owners]
        del self.fields["revision"]

    def draft(self) -> MemoryDraft:
        """The cleaned fields as a draft."""
        fields = {name: value for name, value in self.changes().items() if name != "owner"}
        return MemoryDraft(**fields)


def memory_form(memory: Memory) -> MemoryForm:
    """A form that shows a stored memory."""
    expires = memory.expires_at
    metadata = json.dumps(memory.metadata, ensure_ascii=False, indent=2) if memory.metadata else ""
    initial = {
        "content": memory.content,
        "key": memory.key,
        "type": memory.type,
        "session_id": memory.session_id,
        "expires_at": timezone.localtime(expires) if expires else None,
        "metadata": metadata,
        "is_pinned": memory.is_pinned,
        "is_shared": memory.is_shared,
        "revision": memory.revision,
    }
    return MemoryForm(initial=initial, auto_id="edit-%s")


MODES: Final = (
    ("hybrid", gettext_lazy("Hybrid: words and meaning")),
    ("keyword", gettext_lazy("Keyword")),
    ("vector", gettext_lazy("Semantic")),
    ("recent", gettext_lazy("Recent: newest first")),
)
MATCHES: Final = (
    ("any", gettext_lazy("Any word")),
    ("all", gettext_lazy("All words")),
    ("phrase", gettext_lazy("The exact phrase")),
)


class PlaygroundForm(StudioForm):
    """One simulated retrieval."""

    api_names: ClassVar[Mapping[str, str]] = {"query": "q", "maxTokens": "budget"}

    q = forms.CharField(
        label=gettext_lazy("Query"),
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 3, "data-submit-enter": True, "aria-keyshortcuts": "/"}
        ),
    )
    mode = forms.ChoiceField(label=gettext_lazy("Strategy"), choices=MODES)
    match = forms.ChoiceField(label=gettext_lazy("Must hold"), choices=MATCHES)
    session = forms.ChoiceField(label=gettext_lazy("Session"), required=False)
    budget = forms.IntegerField(label=gettext_lazy("Token budget"), min_value=0, max_value=16_000)
    limit = forms.IntegerField(label=gettext_lazy("At most"), min_value=1, max_value=100)
    memory = forms.CharField(
        label=gettext_lazy("Key, id or words of the memory"), required=False, max_length=500
    )

    def __init__(self, data: Mapping[str, str], *, sessions: Iterable[str]) -> None:
        super().__init__(data, auto_id="play-%s")
        known = dict.fromkeys([*sessions, data["session"]])
        _choice(self, "session").choices = [
            ("", _("All sessions")),
            *((name, name) for name in known if name),
        ]


IMPORT_FILES: Final = ".json,.jsonl,.ndjson,.csv,.md,.markdown,.zip,.gz"


class ImportForm(StudioForm):
    """A file to import, what it is, and the owner it goes to."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        widget=forms.FileInput(attrs={"accept": IMPORT_FILES, "class": "drop"}),
        help_text=gettext_lazy(
            "JSON, JSONL, CSV, Markdown or a zip of these; exports of ChatGPT, Claude, mem0, "
            "OpenMemory and the MCP memory server."
        ),
    )
    format = forms.ChoiceField(
        label=gettext_lazy("Format"), choices=tuple(IMPORT_FORMATS.items()), required=False
    )
    owner = forms.ChoiceField(label=gettext_lazy("Owner"), required=False)
    assistant = forms.BooleanField(
        label=gettext_lazy("Of chats, what the assistant said as well"), required=False
    )

    def __init__(self, *args: Any, owners: Iterable[ApiKey], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choice(self, "owner").choices = [
            ("", _("As the file says, else the default key")),
            *((str(key.uid), key.name) for key in owners),
        ]


class CompactForm(StudioForm):
    """What to compact, by age or down to a token budget."""

    api_names: ClassVar[Mapping[str, str]] = {
        "olderThanDays": "days",
        "maxTokens": "max_tokens",
        "sessionId": "session",
    }

    kind = forms.ChoiceField(
        label=gettext_lazy("How"),
        choices=(
            ("age", gettext_lazy("By age: fold old memories into one summary")),
            ("tokens", gettext_lazy("By budget: shorten the older ones until all fit")),
        ),
        widget=forms.RadioSelect,
    )
    days = forms.IntegerField(
        label=gettext_lazy("Older than (days)"), min_value=1, max_value=365, required=False
    )
    max_tokens = forms.IntegerField(
        label=gettext_lazy("Token budget"), min_value=1, max_value=1_000_000, required=False
    )
    owner = forms.ChoiceField(label=gettext_lazy("Owner"), required=False)
    session = forms.CharField(label=gettext_lazy("Session"), max_length=200, required=False)

    def __init__(self, *args: Any, owners: Iterable[ApiKey], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choice(self, "owner").choices = [
            ("", _("All keys, each by itself")),
            *((str(key.uid), key.name) for key in owners),
        ]
