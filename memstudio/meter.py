"""How far a long command is, on a terminal; silent elsewhere."""

from __future__ import annotations

from typing import Protocol


class Terminal(Protocol):
    """The part of Django's output wrapper that is used."""

    def isatty(self) -> bool: ...
    def write(self, msg: str, style_func: None = None, ending: str | None = None) -> None: ...


class Meter:
    """Told the name of a part and how much of it is done."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal if terminal.isatty() else None
        self._name = ""

    def __call__(self, name: str, done: int) -> None:
        if self._terminal is None:
            return
        if self._name not in ("", name):
            self._terminal.write("")
        self._name = name
        self._terminal.write(f"\r{name}: {done:,}", ending="")
