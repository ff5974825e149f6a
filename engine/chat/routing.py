"""Which upstream a model is asked of: by ``upstream/model``, else by patterns, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from engine.chat.bodies import Protocol

SEPARATOR: Final = "/"


class Speech(StrEnum):
    """What an upstream speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A model server: its name, where it is (``…/v1``), and which models it has.

    ``patterns`` are names with ``*``; without any it takes every model. ``kind`` is the provider
    family that decides where memories go (``engine.chat.families``).
    """

    name: str
    base_url: str
    speech: Speech = Speech.OPENAI
    kind: str = ""
    patterns: tuple[str, ...] = ()
    api_key: str | None = field(default=None, repr=False)

    @property
    def family(self) -> str:
        """The family, by name where none is set."""
        return self.kind or self.name

    def has(self, model: str) -> bool:
        """Whether a model is one of its own."""
        return not self.patterns or any(fnmatchcase(model, one) for one in self.patterns)


@dataclass(frozen=True, slots=True)
class Route:
    """Where to ask, and by which name of the model."""

    upstream: Upstream
    model: str


def routes(model: str, upstreams: Iterable[Upstream], protocol: Protocol) -> list[Route]:
    """Where a model can be asked, in order; the first is meant, others are for when it is down.

    Who is named outright is asked whatever it speaks. Of the others only those that speak the
    protocol are.
    """
    known = list(upstreams)
    name, slash, rest = model.partition(SEPARATOR)
    named = [one for one in known if slash and rest and one.name.lower() == name.lower()]
    if named:
        return [Route(one, rest) for one in named]
    wanted = Speech.ANTHROPIC if protocol is Protocol.MESSAGES else Speech.OPENAI
    return [Route(one, model) for one in known if one.speech is wanted and one.has(model)]
