"""A read that may fail inside a transaction which goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.database import SQLITE, atomic, dialect_of, in_transaction
from engine.protocols import DatabaseConnection


@contextmanager
def reading(database: DatabaseConnection) -> Iterator[None]:
    """Read, and leave the caller's transaction usable when that fails.

    On a server a failed statement ends the transaction it is in; a savepoint before it does not.
    """
    if dialect_of(database) is SQLITE or not in_transaction(database):
        yield
        return
    with atomic(database):
        yield
