"""Who acts: the first argument of every service function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SCOPES: Final = ("read", "write", "chat", "manage")
ALL_SCOPES: Final = frozenset(SCOPES)


@dataclass(frozen=True, slots=True)
class Principal:
    """A studio user, an API key, or the system itself, with the scopes it holds.

    ``owner`` is the primary key of the acting API key; a studio user has none and may name any.
    """

    kind: Literal["studio", "key", "system"]
    name: str
    scopes: frozenset[str]
    owner: int | None = None

    def may(self, scope: str) -> bool:
        """Whether it holds a scope; ``manage`` does not imply the others."""
        return scope in self.scopes

    @property
    def label(self) -> str:
        """How audit rows and revisions name it."""
        return f"{self.kind}:{self.name}"


def studio_user(name: str) -> Principal:
    """Someone who is signed in to the studio; holds every scope."""
    return Principal(kind="studio", name=name, scopes=ALL_SCOPES)


SYSTEM: Final = Principal(kind="system", name="system", scopes=ALL_SCOPES)
"""Commands on the machine itself and scheduled work."""
