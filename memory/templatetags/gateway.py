"""Filters of the pages of the gateway: what memory did in words, and how long steps took."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from django import template
from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

register = template.Library()

STATES: Final[Mapping[str, Promise]] = {
    "injected": pgettext_lazy("memory in a chat", "put in"),
    "none": pgettext_lazy("memory in a chat", "nothing relevant"),
    "off": pgettext_lazy("memory in a chat", "off"),
    "opted_out": pgettext_lazy("memory in a chat", "not wanted"),
    "no_text": pgettext_lazy("memory in a chat", "nothing said"),
    "no_session": pgettext_lazy("memory in a chat", "no session named"),
    "no_place": pgettext_lazy("memory in a chat", "no place for it"),
    "capped": pgettext_lazy("memory in a chat", "day's tokens spent"),
    "late": pgettext_lazy("memory in a chat", "too late"),
    "failed": pgettext_lazy("memory in a chat", "failed"),
}
CHIPS: Final[Mapping[str, str]] = {
    "injected": "on",
    "capped": "warn",
    "late": "failed",
    "failed": "failed",
}
OUTCOMES: Final[Mapping[str, Promise]] = {
    "ok": pgettext_lazy("end of a chat", "answered"),
    "refused": pgettext_lazy("end of a chat", "refused by the provider"),
    "unreached": pgettext_lazy("end of a chat", "provider not reached"),
    "broken": pgettext_lazy("end of a chat", "broke off"),
    "left": pgettext_lazy("end of a chat", "client left"),
}
PLACES: Final[Mapping[str, Promise]] = {
    "system": pgettext_lazy("place of memories", "end of the system prompt"),
    "instructions": pgettext_lazy("place of memories", "end of the instructions"),
    "system_turn": pgettext_lazy("place of memories", "system message before the last turn"),
    "user_turn": pgettext_lazy("place of memories", "in the user's last turn"),
    "after_mark": pgettext_lazy("place of memories", "behind the last cache mark"),
    "classic": pgettext_lazy("place of memories", "as the first system"),
}
TEXTS: Final[Mapping[str, Promise]] = {
    "query": pgettext_lazy("text of a chat", "Said"),
    "injected": pgettext_lazy("text of a chat", "Put in"),
    "reply": pgettext_lazy("text of a chat", "Answered"),
}
STEPS: Final[Mapping[str, Promise]] = {
    "retrieve": pgettext_lazy("step of a chat", "Retrieving"),
    "inject": pgettext_lazy("step of a chat", "Putting in"),
    "ready": pgettext_lazy("step of a chat", "Ready to be sent"),
    "upstream": pgettext_lazy("step of a chat", "First word of the provider"),
    "total": pgettext_lazy("step of a chat", "Whole chat"),
}


@register.filter
def memory_state(value: str) -> str:
    """What memory did, in words."""
    return str(STATES.get(value, value))


@register.filter
def memory_chip(value: str) -> str:
    """The look of what memory did."""
    return CHIPS.get(value, "off")


@register.filter
def chat_outcome(value: str) -> str:
    """How a chat ended, in words."""
    return str(OUTCOMES.get(value, value))


@register.filter
def chat_place(value: str) -> str:
    """Where memories were put, in words."""
    return str(PLACES.get(value, value))


@register.filter
def chat_steps(durations: Mapping[str, float]) -> list[tuple[str, float]]:
    """The steps of a chat in order, with milliseconds."""
    return [(str(label), durations[name]) for name, label in STEPS.items() if name in durations]


@register.filter
def chat_texts(kept: Mapping[str, str]) -> list[tuple[str, str]]:
    """The texts that a receipt holds, each with what it is."""
    return [(str(label), kept[name]) for name, label in TEXTS.items() if kept.get(name)]


@register.filter
def as_json(value: Any) -> str:
    """A body as people read it."""
    return json.dumps(value, ensure_ascii=False, indent=2)
