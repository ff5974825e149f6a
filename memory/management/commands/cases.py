"""``manage.py cases FILE``: run a file of behaviour cases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.cases.runner import read, run


class Command(BaseCommand):
    """Prints ``area passed/total`` for each area; exits with 1 when a case fails."""

    help = "Run a file of behaviour cases through the product."
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file."""
        parser.add_argument("file", type=Path)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run and report."""
        try:
            file = read(options["file"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CommandError(f"not a file of cases: {error}") from None
        if run(file, self.stdout.write):
            raise SystemExit(1)
