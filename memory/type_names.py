"""Types of memories as the command line understands them."""

from __future__ import annotations

from typing import Final

LEGACY: Final = frozenset({"user", "feedback", "project", "reference"})
"""Names of the first seed's earlier versions; all of them are factual today."""


def current_type(name: str | None) -> tuple[str, str]:
    """The type that a name stands for, and a warning to print, or an empty text."""
    if name is None:
        return "factual", ""
    if name in LEGACY:
        return "factual", f"the type {name} is deprecated: it is stored as factual"
    return name, ""
