"""Forms of the webhooks in the studio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, cast

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.forms import StudioForm
from memory.models import ApiKey, Webhook
from memory.services.webhooks.events import EVENTS
from memory.services.webhooks.hooks import WebhookDraft

EVENT_NAMES: Final = (
    ("memory.created", gettext_lazy("memory.created: a memory was stored")),
    ("memory.updated", gettext_lazy("memory.updated: a memory was changed")),
    ("memory.deleted", gettext_lazy("memory.deleted: it went to the trash or was erased")),
    ("memory.restored", gettext_lazy("memory.restored: it came back")),
    ("memory.compacted", gettext_lazy("memory.compacted: it went into a summary")),
    ("job.finished", gettext_lazy("job.finished: a job that somebody asked for has ended")),
)


class WebhookForm(StudioForm):
    """A webhook that is there."""

    api_names: ClassVar = {"includeContent": "include_content"}

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        widget=forms.TextInput(attrs={"placeholder": "my-app", "autocomplete": "off"}),
    )
    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=2000,
        widget=forms.TextInput(
            attrs={
                "placeholder": "https://example.com/hook",
                "autocomplete": "off",
                "inputmode": "url",
                "spellcheck": "false",
            }
        ),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=EVENT_NAMES,
        widget=forms.CheckboxSelectMultiple,
        initial=EVENTS,
    )
    include_content = forms.BooleanField(
        label=gettext_lazy("Send whole memories, not only their ids"), required=False
    )


class NewWebhookForm(WebhookForm):
    """A webhook to make, with whose events it is told."""

    owner = forms.ChoiceField(label=gettext_lazy("Events of"), required=False)
    field_order = ("name", "owner", "url", "events", "include_content")

    def __init__(self, *args: Any, owners: Iterable[ApiKey], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ChoiceField, self.fields["owner"]).choices = [
            ("", _("All keys")),
            *((str(key.uid), key.name) for key in owners),
        ]

    def draft(self) -> WebhookDraft:
        """The cleaned fields as a draft."""
        values = self.cleaned_data
        return WebhookDraft(
            values["name"], values["url"], tuple(values["events"]), values["include_content"]
        )


def webhook_form(hook: Webhook) -> WebhookForm:
    """A form that shows a stored webhook."""
    names = ("name", "url", "events", "include_content")
    return WebhookForm(initial={name: getattr(hook, name) for name in names}, auto_id="hook-%s")
