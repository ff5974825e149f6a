"""``manage.py restore FILE``: load a backup into an empty database, or over what is there."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from memory.backup.errors import BackupError
from memory.backup.manifest import own_fingerprint
from memory.backup.restore import Restored, restore
from memstudio import home, keyfiles
from memstudio.meter import Meter


class Command(BaseCommand):
    """Loads everything or nothing. The studio must not run meanwhile."""

    help = "Load a backup; stop the studio first."
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file, and whether what is there may go."""
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--replace", action="store_true", help="erase what the database holds first"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load it; a failure is one sentence."""
        path: Path = options["file"].expanduser().absolute()
        with _only_one():
            try:
                done = restore(path, replace=options["replace"], progress=Meter(self.stderr))
            except BackupError as error:
                raise CommandError(f"{error} Nothing was changed.") from None
            self._report(done)
            self._put_keys(done)

    def _report(self, done: Restored) -> None:
        vectors = f" and {done.vectors:,} vectors" if done.vectors else ""
        self.stdout.write(
            f"{done.counts.get('memory.Memory', 0):,} memories "
            f"({sum(done.counts.values()):,} rows{vectors}) of {done.manifest.created_at} are back."
        )
        if done.is_older:
            self.stderr.write(
                f"The backup is of an older version ({done.manifest.version}); "
                "what it lacks has its default."
            )
        if done.waiting:
            self.stderr.write(f"{done.waiting:,} passages are embedded when the studio runs.")

    def _put_keys(self, done: Restored) -> None:
        if done.keys:
            for variable in keyfiles.put(Path(settings.MEMORY_STUDIO_HOME), done.keys):
                self.stderr.write(
                    f"{variable} is set to another key and wins over the file: set it to the key "
                    f"in secrets/, or unset it."
                )
        elif done.manifest.key_fingerprint != own_fingerprint():
            self.stderr.write(
                "Stored secrets were sealed by another key "
                f"({done.manifest.key_fingerprint}, not {own_fingerprint()}): put back that "
                "secrets/encryption.key, or enter them again on the Engine page."
            )


def _only_one() -> contextlib.AbstractContextManager[None]:
    """On SQLite, the home to ourselves; the processes on a server are for the person to stop."""
    if connection.vendor != "sqlite":
        return contextlib.nullcontext()
    return home.lock(Path(settings.MEMORY_STUDIO_HOME))
