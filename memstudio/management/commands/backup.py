"""``manage.py backup FILE``: everything that the people own, as it is at one moment."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.backup.errors import BackupError
from memory.backup.manifest import Manifest
from memory.backup.write import Contents, write
from memstudio import keyfiles
from memstudio.meter import Meter


class Command(BaseCommand):
    """Writes an archive that ``restore`` loads, here or into another database."""

    help = "Back up memories, keys, settings and history; the studio may go on running."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file, and what else it is to hold."""
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--with-vectors", action="store_true", help="so that nothing is embedded again"
        )
        parser.add_argument(
            "--with-keys",
            action="store_true",
            help="add the home's key files; the backup then opens every stored secret",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write it; a failure is one sentence."""
        keys = keyfiles.in_force() if options["with_keys"] else None
        contents = Contents(with_vectors=options["with_vectors"], keys=keys)
        path: Path = options["file"].expanduser().absolute()
        try:
            manifest = write(path, contents, Meter(self.stderr))
        except BackupError as error:
            raise CommandError(str(error)) from None
        self._report(path, manifest, has_keys=bool(keys))

    def _report(self, path: Path, manifest: Manifest, *, has_keys: bool) -> None:
        memories, vectors = manifest.rows_of("memory.Memory"), len(manifest.vectors)
        size = path.stat().st_size / 1e6
        rows = sum(member.rows for member in manifest.members if member.table)
        with_vectors = f" and {sum(m.rows for m in manifest.vectors):,} vectors" if vectors else ""
        self.stdout.write(
            f"{memories:,} memories ({rows:,} rows{with_vectors}) are in {path}, {size:,.1f} MB."
        )
        if has_keys:
            self.stderr.write(
                "Whoever has this file can read every stored secret: keep it as you keep keys."
            )
        else:
            self.stderr.write(
                f"Stored secrets stay sealed by the encryption key {manifest.key_fingerprint}, "
                "which is not in it: keep a copy of secrets/encryption.key, or use --with-keys."
            )
        self.stderr.write("Files waiting to be imported and installed models are not part of it.")
