"""Filters of the inbox and of extraction: categories, reasons and outcomes in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django import template
from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

register = template.Library()

CATEGORIES: Final[Mapping[str, Promise]] = {
    "identity": pgettext_lazy("category of a fact", "identity"),
    "preference": pgettext_lazy("category of a fact", "preference"),
    "decision": pgettext_lazy("category of a fact", "decision"),
    "pattern": pgettext_lazy("category of a fact", "habit"),
    "instruction": pgettext_lazy("category of a fact", "instruction"),
}
CATEGORY_CHIPS: Final[Mapping[str, str]] = {
    "identity": "procedural",
    "preference": "factual",
    "decision": "episodic",
    "pattern": "semantic",
    "instruction": "warn",
}
REASONS: Final[Mapping[str, Promise]] = {
    "low confidence": pgettext_lazy("why a fact waits", "not sure enough"),
    "instruction": pgettext_lazy("why a fact waits", "orders to a model"),
}
GUARDS: Final[Mapping[str, Promise]] = {
    "question": pgettext_lazy("why nothing was learnt", "a question"),
    "conditional": pgettext_lazy("why nothing was learnt", "only supposed"),
    "negated frame": pgettext_lazy("why nothing was learnt", "it was denied"),
    "hearsay": pgettext_lazy("why nothing was learnt", "somebody else says so"),
    "fiction": pgettext_lazy("why nothing was learnt", "fiction"),
    "request": pgettext_lazy("why nothing was learnt", "a request"),
    "example": pgettext_lazy("why nothing was learnt", "an example"),
    "as an assistant": pgettext_lazy("why nothing was learnt", "an assistant about itself"),
    "agent narration": pgettext_lazy("why nothing was learnt", "an assistant tells what it does"),
    "deixis": pgettext_lazy("why nothing was learnt", "it points at something else"),
    "moment": pgettext_lazy("why nothing was learnt", "only for the moment"),
    "wish": pgettext_lazy("why nothing was learnt", "a wish of the moment"),
    "past": pgettext_lazy("why nothing was learnt", "long past"),
    "not a habit": pgettext_lazy("why nothing was learnt", "no habit"),
    "idiom": pgettext_lazy("why nothing was learnt", "a figure of speech"),
    "on a screen": pgettext_lazy("why nothing was learnt", "something on a screen"),
    "undecided": pgettext_lazy("why nothing was learnt", "not decided yet"),
    "someone else": pgettext_lazy("why nothing was learnt", "about somebody else"),
    "not about the user": pgettext_lazy("why nothing was learnt", "not about the user"),
    "embedded": pgettext_lazy("why nothing was learnt", "part of something larger"),
    "code": pgettext_lazy("why nothing was learnt", "code"),
    "pasted": pgettext_lazy("why nothing was learnt", "pasted text"),
    "quotation": pgettext_lazy("why nothing was learnt", "a quotation"),
    "given text": pgettext_lazy("why nothing was learnt", "text to be worked on"),
    "secret": pgettext_lazy("why nothing was learnt", "a secret"),
    "said by memory": pgettext_lazy("why nothing was learnt", "memory itself said so"),
    "low confidence": pgettext_lazy("why nothing was learnt", "far from sure"),
}
OUTCOMES: Final[Mapping[str, Promise]] = {
    "stored": pgettext_lazy("what becomes of a fact", "memory"),
    "known": pgettext_lazy("what becomes of a fact", "known already"),
    "waiting": pgettext_lazy("what becomes of a fact", "inbox"),
    "rejected": pgettext_lazy("what becomes of a fact", "decided before"),
}
OUTCOME_CHIPS: Final[Mapping[str, str]] = {
    "stored": "on",
    "known": "off",
    "waiting": "warn",
    "rejected": "off",
}
STATES: Final[Mapping[str, Promise]] = {
    "pending": pgettext_lazy("state of an item of the inbox", "Waiting"),
    "accepted": pgettext_lazy("state of an item of the inbox", "Accepted"),
    "rejected": pgettext_lazy("state of an item of the inbox", "Rejected"),
}


@register.filter
def category_label(value: str) -> str:
    """The word for a category of facts."""
    return str(CATEGORIES.get(value, value))


@register.filter
def category_chip(value: str) -> str:
    """The chip of a category."""
    return CATEGORY_CHIPS.get(value, "off")


@register.filter
def reason_label(value: str) -> str:
    """Why a fact waits."""
    return str(REASONS.get(value, value))


@register.filter
def guard_label(value: str) -> str:
    """Why nothing was learnt from a clause."""
    return str(GUARDS.get(value, value))


@register.filter
def outcome_label(value: str) -> str:
    """What becomes of a fact."""
    return str(OUTCOMES.get(value, value))


@register.filter
def outcome_chip(value: str) -> str:
    """The chip of an outcome."""
    return OUTCOME_CHIPS.get(value, "off")


@register.filter
def inbox_state(value: str) -> str:
    """The word for a state of an item."""
    return str(STATES.get(value, value))


@register.filter
def percent(value: float) -> str:
    """A confidence as whole percent."""
    return f"{round(100 * value)} %"
