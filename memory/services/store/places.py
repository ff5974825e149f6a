"""Where an item lies: namespace and key as the key of its memory, and back.

Labels are not empty and hold no dot, so that ``store:users.alice..profile`` is read in one way
only, and everything below a namespace begins alike. The key may hold dots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import F, Q, Value
from django.db.models.functions import Left
from django.db.models.lookups import Exact
from django.utils.translation import gettext as _

from memory.errors import Invalid
from memory.services.drafts import MAX_KEY, is_storable

PREFIX: Final = "store:"
MAX_LABELS: Final = 50
WILDCARD: Final = "*"
Namespace = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """The namespace and the key of an item."""

    namespace: Namespace
    key: str

    @property
    def memory_key(self) -> str:
        """The key of its memory."""
        return f"{_start(self.namespace)}.{self.key}"


@dataclass(frozen=True, slots=True)
class Below:
    """Items within a namespace, at any depth; of the empty one, every item."""

    namespace: Namespace = ()

    def condition(self, of: str) -> Q:
        """The condition; case counts, which ``LIKE`` would not have on SQLite."""
        start = _start(self.namespace) if self.namespace else PREFIX
        return Q(Exact(Left(F(f"{of}key"), len(start)), Value(start)))


def _start(namespace: Namespace) -> str:
    return f"{PREFIX}{'.'.join(namespace)}."


def place(namespace: Sequence[str], key: str) -> Place:
    """A place as a client names it. Raises ``Invalid``."""
    labels = checked(namespace)
    if not labels:
        message = _("A namespace needs a label.")
        raise Invalid(message, fields={"namespace": message})
    found = Place(labels, key)
    if not key or key != key.strip() or not is_storable(key) or len(found.memory_key) > MAX_KEY:
        message = _("A key is a text without blanks around it; with its namespace, it is short.")
        raise Invalid(message, fields={"key": message})
    return found


def checked(namespace: Sequence[str], name: str = "namespace") -> Namespace:
    """A namespace whose labels are such. Raises ``Invalid``."""
    labels = tuple(namespace)
    is_fine = all(label and "." not in label and is_storable(label) for label in labels)
    if not is_fine or len(labels) > MAX_LABELS:
        message = _("Labels of a namespace are texts that are not empty and hold no dot.")
        raise Invalid(message, fields={name: message})
    return labels


def read(memory_key: str) -> Place:
    """The place of a memory with such a key; whatever stands there is read as one."""
    labels, _dots, key = memory_key.removeprefix(PREFIX).partition("..")
    return Place(tuple(labels.split(".")), key)


def matches(namespace: Namespace, pattern: Namespace, *, at_end: bool = False) -> bool:
    """Whether a namespace begins (or ends) like a pattern, in which ``*`` is any label."""
    if len(pattern) > len(namespace):
        return False
    part = namespace[len(namespace) - len(pattern) :] if at_end else namespace[: len(pattern)]
    return all(want in (WILDCARD, label) for want, label in zip(pattern, part, strict=True))
