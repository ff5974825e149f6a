"""Words of the pages of vaults, and short forms of hashes and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django import template
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import ngettext, pgettext_lazy

from engine.vault.index import IndexedChunk
from engine.vault.search import Found
from memory.clock import now
from memory.models import Vault

register = template.Library()

KINDS: Final[Mapping[str, Promise]] = {
    "card": pgettext_lazy("kind of asset", "card"),
    "memory": pgettext_lazy("kind of asset", "memory"),
    "private": pgettext_lazy("kind of asset", "private"),
    "credential": pgettext_lazy("kind of asset", "credential"),
    "file": pgettext_lazy("kind of asset", "file"),
}
ROLES: Final[Mapping[str, Promise]] = {
    "reader": pgettext_lazy("role in a vault", "reader"),
    "writer": pgettext_lazy("role in a vault", "writer"),
    "manager": pgettext_lazy("role in a vault", "manager"),
}


@register.filter
def kind_label(value: str) -> str:
    """What an asset is."""
    return str(KINDS.get(value, value))


@register.filter
def role_label(value: str) -> str:
    """What somebody is in a vault."""
    return str(ROLES.get(value, value))


@register.filter
def locks_in(seconds: float | None) -> str:
    """When a vault locks itself; empty when it does not."""
    if seconds is None:
        return ""
    minutes = max(1, math.ceil(seconds / 60))
    text = ngettext("locks itself in %(n)s min", "locks itself in %(n)s min", minutes)
    return text % {"n": minutes}


@register.filter
def is_over(moment: datetime | None) -> bool:
    """Whether a moment has passed."""
    return moment is not None and moment <= now()


@register.filter
def short_hash(value: str) -> str:
    """The beginning of a hash that is shown whole elsewhere."""
    return f"{value[:19]}…"


@register.filter
def size(value: int) -> str:
    """Bytes in the largest fitting unit."""
    return filesizeformat(value)


@register.simple_tag
def passage_url(vault: Vault, chunk: IndexedChunk) -> str:
    """Where a document is read with this chunk marked."""
    address = reverse("vault-asset", args=[vault.uid, chunk.asset])
    place = f"from={chunk.byte_start}&to={chunk.byte_end}"
    return f"{address}?revision={chunk.revision}&{place}"


@register.simple_tag
def citation(vault: Vault, found: Found) -> SafeString:
    """A label that opens its passage; without blanks around it, inside a sentence."""
    address = passage_url(vault, found.chunk)
    return format_html(
        '<a class="citation" href="{}#chunk" hx-get="{}" hx-target="#vault-source"'
        ' hx-swap="outerHTML" title="{}">[{}]</a>',
        address,
        address,
        found.chunk.passage.title,
        found.label,
    )
