"""What every process does before it serves or works: a database that answers, of our version."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from engine.database import FAILURES
from memstudio import home
from memstudio.errors import StartError

LOCK: Final = 0x6D656D6F727973
"""Of those who start at once, one brings the database up to date and the others wait for it."""

_known_current = False


def prepare(*, accept_new_keys: bool = False) -> None:
    """Bring the database up to date. Raises ``StartError`` when it cannot be used.

    ``accept_new_keys``: the keys of this process are from now on those of the installation.
    """
    from memory import wiring

    try:
        with _one_at_a_time():
            if is_current():
                wiring.ensure_indexes()
            else:
                call_command("migrate", verbosity=0, interactive=False)
            if not wiring.is_alone():
                _check_keys(accept_new=accept_new_keys)
    except (DatabaseError, *FAILURES) as error:
        raise StartError(refusal(error)) from None


def is_current() -> bool:
    """Whether every migration has been applied; asked of the database until it is so."""
    global _known_current
    if not _known_current:
        executor = MigrationExecutor(connection)
        _known_current = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return _known_current


def place_of_data() -> str:
    """Where the rows are, for people; never what signs in there."""
    known = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(settings.MEMORY_STUDIO_HOME)
    place = ":".join(part for part in (known["HOST"], known["PORT"]) if part) or "this machine"
    return f"the database {known['NAME']} on {place}"


def refusal(error: Exception) -> str:
    """Why the database cannot be used, in one sentence."""
    reason = str(error).strip().partition("\n")[0]
    if connection.vendor == "sqlite":
        return f"The database {connection.settings_dict['NAME']} cannot be used ({reason})."
    return f"The{place_of_data()[3:]} cannot be used ({reason})."


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    if connection.vendor == "sqlite":
        with home.turn(settings.MEMORY_STUDIO_HOME):
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        yield
    finally:
        with contextlib.suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _check_keys(*, accept_new: bool) -> None:
    from memory.services import installation

    differing = installation.keep_keys() if accept_new else installation.differing_keys()
    if differing:
        names = " and ".join(differing)
        raise StartError(
            f"This database belongs to an installation with another {names}; give this process "
            "the same, or run `manage.py prepare --accept-new-keys`."
        )


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """End the process with one sentence where ``manage.py`` is not there to do it."""
    try:
        yield
    except StartError as error:
        sys.stderr.write(f"memory studio: {error}\n")
        raise SystemExit(1) from None
