"""The text of a value: what is searched, and what people see in the studio."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.utils.translation import gettext as _

from memory.errors import Invalid

Index = Literal[False] | Sequence[str] | None
MAX_PATHS: Final = 50
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\*|-?\d{1,6})\]")
_NAME: Final = r"[^.\[\]]+(?:\[(?:\*|-?\d{1,6})\])*"
_PATH: Final = re.compile(rf"\$|{_NAME}(?:\.{_NAME})*")


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a value. ``field`` is the one member that it is, when it is just that."""

    text: str
    field: str = ""
    is_indexed: bool = True


def text_of(value: Mapping[str, Any], index: Index = None) -> Text:
    """Every text in a value, or those at paths (``a.b``, ``list[*].c``, ``$``), one a line.

    A value without a text stands as JSON, and so does one that is not to be indexed. Raises
    ``Invalid`` for what is no path.
    """
    if index is False:
        return Text(_as_json(value), is_indexed=False)
    paths = ["$"] if index is None else list(index)
    if len(paths) > MAX_PATHS or not all(_PATH.fullmatch(path) for path in paths):
        message = _("Paths are names with dots between them, such as “profile.text”.")
        raise Invalid(message, fields={"index": message})
    texts = [text for path in paths for found in _at(value, path) for text in _texts(found)]
    if not texts:
        return Text(_as_json(value), is_indexed=index is None)
    alone = [name for name, item in value.items() if texts == [item]]
    return Text("\n".join(texts), field=alone[0] if len(alone) == 1 else "")


def _as_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _at(value: object, path: str) -> list[object]:
    """What stands at a path; several with ``[*]``, none where there is nothing."""
    found: list[object] = [value]
    if path == "$":
        return found
    for name, place in _STEP.findall(path):
        found = [inner for item in found for inner in _step(item, name, place)]
    return found


def _step(item: object, name: str, place: str) -> Iterator[object]:
    if name:
        if isinstance(item, Mapping) and name in item:
            yield item[name]
    elif isinstance(item, list):
        if place == "*":
            yield from item
        elif -len(item) <= int(place) < len(item):
            yield item[int(place)]


def _texts(value: object) -> Iterator[str]:
    """Every text within, in order."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
