"""Where spans of a trace are opened. Nothing is recorded, and next to nothing is done, until a
recorder is installed.

Names and attributes are kinds, counts and places; never a text, a key or the path of an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

Kind = Literal["internal", "server", "client", "consumer"]
Value = str | int | float | bool


class Span(Protocol):
    """One span while it lasts."""

    def rename(self, name: str) -> None:
        """Give it the name that is known only now."""
        ...

    def set(self, name: str, value: Value) -> None:
        """Add an attribute."""
        ...

    def failed(self, code: str) -> None:
        """Mark it as failed, by a code and not by a message."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """A span to open. ``parent`` is a W3C ``traceparent``; empty means whatever is open here."""

    name: str
    kind: Kind = "internal"
    parent: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)


class Recorder(Protocol):
    """What keeps spans."""

    def open(self, opening: Opening) -> AbstractContextManager[Span]:
        """A span around what is done inside; an exception marks it by its class."""
        ...

    def past(self, name: str, started_ns: int, ended_ns: int) -> None:
        """A span that has ended, inside the one that is open. Times since the epoch."""
        ...

    def current(self) -> str:
        """The ``traceparent`` of the span that is open here; empty without one."""
        ...


class _Nothing:
    def rename(self, name: str) -> None:
        """Nothing."""

    def set(self, name: str, value: Value) -> None:
        """Nothing."""

    def failed(self, code: str) -> None:
        """Nothing."""


_OFF: Final[AbstractContextManager[Span]] = nullcontext(_Nothing())
_recorder: Recorder | None = None


def install(recorder: Recorder | None) -> None:
    """Record spans from now on, or (None) no more."""
    global _recorder
    _recorder = recorder


def recorder() -> Recorder | None:
    """What keeps spans now."""
    return _recorder


def is_on() -> bool:
    """Whether spans are recorded."""
    return _recorder is not None


def span(
    name: str,
    kind: Kind = "internal",
    *,
    parent: str = "",
    attributes: Mapping[str, Value] | None = None,
) -> AbstractContextManager[Span]:
    """A span around what is done inside."""
    if _recorder is None:
        return _OFF
    return _recorder.open(Opening(name, kind, parent, attributes or {}))


def past(name: str, started_ns: int, ended_ns: int) -> None:
    """A span that has ended already, inside the one that is open."""
    if _recorder is not None:
        _recorder.past(name, started_ns, ended_ns)


def current() -> str:
    """What to hand on, so that work elsewhere belongs to the span that is open here."""
    return _recorder.current() if _recorder is not None else ""
