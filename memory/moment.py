"""Reading several things as they were at one moment, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_moment() -> Iterator[None]:
    """What is read inside belongs together: two counts differ only when they really do.

    On SQLite every transaction is like that, and writers wait. Inside another transaction it is
    as that one is.
    """
    is_first = not connection.in_atomic_block
    with transaction.atomic():
        if is_first and connection.vendor != "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield
