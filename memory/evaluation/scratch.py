"""A scratch database beside the real one: evaluation never touches the user's memories."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import call_command
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from memory import wiring
from memory.services import signin


@contextmanager
def scratch_database() -> Iterator[str]:
    """Point the default connection at a fresh, migrated database; put it back afterwards.

    That is a SQLite file in a temporary folder, or a database of the same server, which the
    user of ``DATABASE_URL`` must be allowed to create.
    """
    connection = connections["default"]
    make = _file if connection.vendor == "sqlite" else _database
    with make(connection) as name:
        connection.close()
        earlier = connection.settings_dict["NAME"]
        connection.settings_dict["NAME"] = name
        wiring.reset()
        try:
            call_command("migrate", verbosity=0, interactive=False)
            signin.first_start()
            yield name
        finally:
            connection.close()
            connection.settings_dict["NAME"] = earlier
            wiring.reset()


@contextmanager
def _file(_connection: BaseDatabaseWrapper) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="memory-studio-evaluate-") as folder:
        yield str(Path(folder) / "scratch.sqlite3")


@contextmanager
def _database(connection: BaseDatabaseWrapper) -> Iterator[str]:
    name = f"memory_studio_evaluate_{secrets.token_hex(4)}"
    quoted = connection.ops.quote_name(name)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {quoted}")
    try:
        yield name
    finally:
        with connection.cursor() as cursor:
            # With its connections: threads of the engine may still hold one.
            cursor.execute(f"DROP DATABASE {quoted} WITH (FORCE)")
