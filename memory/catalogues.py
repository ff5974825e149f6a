"""Message catalogues without the gettext binaries: extract, merge, compile (development only)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

LOCALES: Final = ("ja", "zh_Hans")
_KEYWORDS: Final = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "said": None,
}
_PACKAGES: Final = ("memory", "memstudio")


def path_of(locale: str) -> Path:
    """The catalogue of a language, without its suffix."""
    return Path(settings.BASE_DIR) / "locale" / locale / "LC_MESSAGES" / "django"


def template() -> Catalog:
    """Every message of the templates and the code."""
    catalog = Catalog(project="Memory Studio", fuzzy=False)
    root = Path(settings.BASE_DIR)
    for path, source in _sources(root):
        found = extract("python", io.BytesIO(source.encode()), keywords=_KEYWORDS)
        for _line, message, _comments, context in found:
            catalog.add(message, locations=[(str(path.relative_to(root)), 0)], context=context)
    return catalog


def read(locale: str) -> Catalog:
    """The catalogue of a language as it is."""
    with path_of(locale).with_suffix(".po").open("rb") as file:
        return read_po(file, locale=locale)


def update(locale: str) -> list[str]:
    """Merge new messages, drop those that are gone, compile; what has no translation."""
    po = path_of(locale).with_suffix(".po")
    po.parent.mkdir(parents=True, exist_ok=True)
    catalog = read(locale) if po.exists() else Catalog(locale=locale, project="Memory Studio")
    catalog.update(template(), no_fuzzy_matching=True, update_creation_date=False)
    catalog.obsolete.clear()
    with po.open("wb") as file:
        write_po(file, catalog, sort_output=True, no_location=True, width=100, omit_header=False)
    po.with_suffix(".mo").write_bytes(compiled(read(locale)))
    return untranslated(catalog)


def compiled(catalog: Catalog) -> bytes:
    """The binary form of a catalogue."""
    buffer = io.BytesIO()
    write_mo(buffer, catalog)
    return buffer.getvalue()


def untranslated(catalog: Catalog) -> list[str]:
    """Messages without a (whole) translation."""
    missing: list[str] = []
    for message in catalog:
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        if message.id and not all(texts):
            missing.append(message.id if isinstance(message.id, str) else message.id[0])
    return missing


def _sources(root: Path) -> Iterator[tuple[Path, str]]:
    """Python files as they are, templates as the gettext calls they contain."""
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if not {"tests", "migrations"} & set(path.parts):
                yield path, path.read_text(encoding="utf-8")
    for path in sorted((root / "templates").rglob("*.html")):
        calls = templatize(path.read_text(encoding="utf-8"), origin=str(path))
        # What is not a call is blanked out in place: its indentation means nothing to Python.
        yield path, "\n".join(line.strip() for line in calls.splitlines())
