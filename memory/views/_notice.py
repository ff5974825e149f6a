"""Notices: what the last action did, with its undo; kept in the session over a redirect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from django.http import HttpRequest

SESSION_KEY = "notice"
Level = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Undo:
    """A POST that takes the action back: its address and its fields."""

    url: str
    fields: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, url: str, action: str = "", ids: Iterable[object] = ()) -> Undo:
        """An undo by a bulk action on some ids."""
        fields = [("action", action)] if action else []
        return cls(url, (*fields, *(("ids", str(value)) for value in ids)))


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence above the tools; it stays until the next action."""

    text: str
    level: Level = "ok"
    undo: Undo | None = None


def remember(request: HttpRequest, notice: Notice) -> None:
    """Keep a notice for the page that follows a redirect."""
    request.session[SESSION_KEY] = asdict(notice)


def recall(request: HttpRequest) -> Notice | None:
    """The kept notice, once."""
    if SESSION_KEY not in request.session:
        return None
    kept: dict[str, Any] = request.session.pop(SESSION_KEY)
    undo = kept.get("undo")
    fields = tuple((name, value) for name, value in undo["fields"]) if undo else ()
    kept["undo"] = Undo(undo["url"], fields) if undo else None
    return Notice(**kept)
