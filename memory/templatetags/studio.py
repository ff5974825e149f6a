"""Tags and filters of the studio's templates: presentation only, no queries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django import template
from django.template.context import Context
from django.templatetags.static import static
from django.utils import formats, numberformat, timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from engine.types import Degraded
from memory.clock import now
from memory.models import Job
from memory.said import told
from memory.services.degraded import explain

register = template.Library()

THEMES: Final = ("auto", "light", "dark")
TYPES: Final[Mapping[str, Promise]] = {
    "factual": gettext_lazy("factual"),
    "episodic": gettext_lazy("episodic"),
    "procedural": gettext_lazy("procedural"),
    "semantic": pgettext_lazy("type of a memory", "semantic"),
}
INDEX_STATES: Final[Mapping[str, Promise]] = {
    "indexed": gettext_lazy("indexed"),
    "pending": gettext_lazy("pending"),
    "failed": pgettext_lazy("state of the index", "failed"),
    "off": gettext_lazy("keyword only"),
}
HIDDEN: Final[Mapping[str, tuple[Promise, Promise]]] = {
    "expired": (
        gettext_lazy("expired"),
        gettext_lazy("Past its expiry: never retrieved any more"),
    ),
    "retention": (
        gettext_lazy("hidden"),
        gettext_lazy("Past its retention: not retrieved until it is edited or pinned"),
    ),
    "decayed": (
        gettext_lazy("decayed"),
        gettext_lazy("Not used for too long: not retrieved until it is used or pinned"),
    ),
}
TIERS: Final[Mapping[str, Promise]] = {
    "recent": pgettext_lazy("tier", "recent"),
    "keyword": pgettext_lazy("tier", "keyword"),
    "vector": pgettext_lazy("tier", "vector"),
    "hybrid": pgettext_lazy("tier", "hybrid"),
    "vectorStore": gettext_lazy("Vector store"),
    "backend": pgettext_lazy("tier", "backend"),
}
TIER_STATES: Final[Mapping[str, Promise]] = {
    "on": pgettext_lazy("state of a tier", "on"),
    "off": pgettext_lazy("state of a tier", "off"),
    "warn": gettext_lazy("limited"),
    "error": gettext_lazy("failing"),
}
JOB_STATES: Final[Mapping[str, Promise]] = {
    "queued": gettext_lazy("queued"),
    "running": gettext_lazy("running"),
    "succeeded": gettext_lazy("done"),
    "failed": pgettext_lazy("state of a job", "failed"),
    "cancelled": gettext_lazy("cancelled"),
}
JOB_KINDS: Final[Mapping[str, Promise]] = {
    "reindex": gettext_lazy("Reindex"),
    "compact": gettext_lazy("Compaction"),
    "import": gettext_lazy("Import"),
    "import-check": gettext_lazy("Check of a file"),
    "mirror": gettext_lazy("Mirror to Qdrant"),
    "backfill": gettext_lazy("Build in Qdrant"),
    "backend-follow": gettext_lazy("Backends follow"),
    "backend-copy": gettext_lazy("Copy to a backend"),
    "backend-pull": gettext_lazy("Read from a backend"),
    "webhook": gettext_lazy("Send to a webhook"),
}


IMPORT_FORMATS: Final[Mapping[str, Promise | str]] = {
    "auto": gettext_lazy("Told from its content"),
    "json": gettext_lazy("JSON: our export, or a list"),
    "jsonl": gettext_lazy("JSON lines"),
    "csv": "CSV",
    "markdown": gettext_lazy("Markdown files"),
    "mem0": "mem0",
    "openmemory": gettext_lazy("OpenMemory backup"),
    "chatgpt": gettext_lazy("ChatGPT export"),
    "claude": gettext_lazy("Claude export"),
    "mcp": gettext_lazy("MCP memory server"),
}


EXPORT_FORMATS: Final[Mapping[str, Promise | str]] = {
    "json": "JSON",
    "jsonl": gettext_lazy("JSON lines"),
    "csv": "CSV",
    "markdown": gettext_lazy("Markdown files (zip)"),
}


def chosen_theme(cookies: Mapping[str, str]) -> str:
    """The theme that cookies ask for; an odd one counts as the system's."""
    chosen = cookies.get("theme", "")
    return chosen if chosen in THEMES else THEMES[0]


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """The theme the browser asked for by its cookie: ``auto``, ``light`` or ``dark``."""
    request = context.get("request")
    return chosen_theme(request.COOKIES if request is not None else {})


@register.simple_tag(takes_context=True)
def cookie_open(context: Context, name: str) -> str:
    """The attribute of a part that this browser keeps unfolded; nothing otherwise."""
    request = context.get("request")
    return "open" if request is not None and request.COOKIES.get(name) == "open" else ""


@register.simple_tag
def icon(name: str) -> SafeString:
    """One symbol of the sprite, hidden from assistive technology."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("icons.svg"),
        name,
    )


@register.simple_tag
def score_bar(value: float | None, best: float | None, kind: str = "") -> SafeString:
    """A horizontal bar of ``value`` relative to ``best``; decoration beside the number."""
    share = max(0.0, min(1.0, value / best)) if value is not None and best else 0.0
    return format_html(
        '<svg class="bar-chart {}" viewBox="0 0 100 4" preserveAspectRatio="none"'
        ' aria-hidden="true"><rect class="track" width="100" height="4"></rect>'
        '<rect class="value" width="{}" height="4"></rect></svg>',
        kind,
        f"{share * 100:.1f}",
    )


@register.filter
def num(value: float | str | None, digits: int = 0) -> str:
    """A number in the reader's notation, grouped; a dash for none."""
    if value is None or value == "":
        return "–"
    # Thousands in every language: Django's Chinese formats leave numbers ungrouped.
    return numberformat.format(
        value,
        formats.get_format("DECIMAL_SEPARATOR"),
        decimal_pos=digits,
        grouping=3,
        thousand_sep=formats.get_format("THOUSAND_SEPARATOR") or ",",
        force_grouping=True,
    )


@register.filter
def share(value: float | None) -> str:
    """A fraction as percent with one digit; a dash for None."""
    return "–" if value is None else _("%(value)s %%") % {"value": num(value * 100, 1)}


@register.filter
def age(moment: datetime | None) -> SafeString | str:
    """How long ago, in the largest whole unit, as a ``time`` element with the full moment."""
    if moment is None:
        return "–"
    return _time(moment, _age_text((now() - moment).total_seconds()))


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """The same as a phrase: “3 h ago”, “just now”."""
    if moment is None:
        return "–"
    seconds = (now() - moment).total_seconds()
    text = _("just now") if seconds < 60 else _("%(age)s ago") % {"age": _age_text(seconds)}
    return _time(moment, text)


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    """Date and time in the reader's notation, as a ``time`` element."""
    if value is None:
        return "–"
    iso = value.isoformat(timespec="seconds")
    return format_html('<time datetime="{}">{}</time>', iso, _full(value))


@register.filter
def type_label(value: str) -> str:
    """The word for a memory type."""
    return str(TYPES.get(value, value))


@register.filter
def index_label(value: str) -> str:
    """The word for an index state."""
    return str(INDEX_STATES.get(value, value))


@register.filter
def hidden_label(reason: str) -> str:
    """The word for why a live row is hidden."""
    return str(HIDDEN.get(reason, (reason, reason))[0])


@register.filter
def hidden_title(reason: str) -> str:
    """The sentence for why a live row is hidden."""
    return str(HIDDEN.get(reason, (reason, reason))[1])


@register.filter
def tier_label(value: str) -> str:
    """The word for the tier that answered."""
    return str(TIERS.get(value, value))


@register.filter
def tier_state(value: str) -> str:
    """The word for a tier's state."""
    return str(TIER_STATES.get(value, value))


@register.filter
def job_state(value: str) -> str:
    """The word for a job's state."""
    return str(JOB_STATES.get(value, value))


@register.filter
def job_kind(value: str) -> str:
    """The word for what a job does."""
    return str(JOB_KINDS.get(value, value))


@register.filter
def job_error(job: Job) -> str:
    """Why a job failed, in the reader's language where its code is known."""
    message = _(job.message) if job.message else job.error_code
    return explain(Degraded("job", job.error_code, message))


@register.filter
def import_format(value: str) -> str:
    """The words for the format of a file."""
    return str(IMPORT_FORMATS.get(value, value))


@register.filter
def problem_place(problem: Mapping[str, Any]) -> str:
    """Where in a file a record stands that was skipped."""
    file, place = problem.get("file", ""), {"place": num(problem["place"])}
    if problem.get("unit") == "file":
        return file or _("File %(place)s") % place
    is_line = problem.get("unit") == "line"
    text = _("Line %(place)s") % place if is_line else _("Record %(place)s") % place
    return f"{file}, {text}" if file else text


@register.filter
def problem_text(problem: Mapping[str, Any]) -> str:
    """Why one record of an import was skipped."""
    kept = problem.get("parts") or [{"text": problem["message"]}]
    return told(kept)


def _full(value: datetime) -> str:
    return formats.date_format(timezone.localtime(value), "SHORT_DATETIME_FORMAT")


def _time(moment: datetime, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(timespec="seconds"),
        _full(moment),
        text,
    )


def _age_text(seconds: float) -> str:
    minutes = int(max(0, seconds) // 60)
    if minutes < 1:
        return _("now")
    if minutes < 60:
        return _("%(count)s min") % {"count": minutes}
    if minutes < 48 * 60:
        return _("%(count)s h") % {"count": minutes // 60}
    days = minutes // (24 * 60)
    if days < 60:
        return _("%(count)s d") % {"count": days}
    if days < 730:
        return _("%(count)s mo") % {"count": days // 30}
    return _("%(count)s y") % {"count": days // 365}
