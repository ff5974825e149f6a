"""A scratch database beside the real one: evaluation never touches the user's memories."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import call_command
from django.db import connections

from memory import wiring
from memory.services import signin


@contextmanager
def scratch_database() -> Iterator[Path]:
    """Point the default connection at a fresh, migrated SQLite file; put it back afterwards."""
    connection = connections["default"]
    with tempfile.TemporaryDirectory(prefix="memory-studio-evaluate-") as folder:
        path = Path(folder) / "scratch.sqlite3"
        connection.close()
        earlier = connection.settings_dict["NAME"]
        connection.settings_dict["NAME"] = str(path)
        wiring.reset()
        try:
            call_command("migrate", verbosity=0, interactive=False)
            signin.first_start()
            yield path
        finally:
            connection.close()
            connection.settings_dict["NAME"] = earlier
            wiring.reset()
