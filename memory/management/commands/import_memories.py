"""``manage.py import_memories FILE --api-key NAME``: a file of any format, in the foreground."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.errors import ServiceError
from memory.models import ApiKey
from memory.principal import SYSTEM
from memory.services import exchange, keys, signin
from memory.services.import_report import ImportReport
from memory.services.import_store import ImportOrder


class Command(BaseCommand):
    """Imports memories in the foreground, with progress."""

    help = "Import memories from a file of any format that an import reads."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file, and the key that will own the memories."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--api-key", default=None, help="owner; made when it does not exist")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Read, store, report."""
        signin.first_start()
        name = options["api_key"]
        if name and not ApiKey.objects.filter(name=name).exists():
            keys.create(SYSTEM, name)
        try:
            with options["file"].open("rb") as file:
                order = ImportOrder(owner=name, name=options["file"].name)
                report = exchange.import_file(SYSTEM, file, order, progress=self._progress)
        except OSError as error:
            raise CommandError(f"cannot read {options['file']}: {error.strerror}") from None
        except ServiceError as error:
            raise CommandError(error.message) from None
        self._report(report)

    def _progress(self, done: int, total: int) -> None:
        if self.stderr.isatty():
            self.stderr.write(f"\r{done:,} of {total:,}", ending="")

    def _report(self, report: ImportReport) -> None:
        if self.stderr.isatty():
            self.stderr.write("")
        for problem in report.problems:
            self.stderr.write(f"{problem.unit} {problem.place}: {problem.message}")
        self.stdout.write(
            f"{report.imported:,} imported, {report.updated:,} updated, {report.same:,} the same, "
            f"{report.skipped:,} skipped "
            f"in {report.seconds:.1f} s ({report.per_second:,.0f} a second)"
        )
