"""``manage.py behaviours FILE``: which described cases no test and no document holds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.cases.behaviours import by_area, held
from memory.cases.runner import read


class Command(BaseCommand):
    """Prints ``area held/total``, every case that nothing holds, and exits with 1 if there is one.

    A case is held by a test whose name carries its id, or by a line of docs/differences.md.
    """

    help = "List described cases that no test and no line of docs/differences.md holds."
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file, and how much to print."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--list", action="store_true", help="name what holds each case")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Look and report."""
        try:
            cases = read(options["file"]).cases
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CommandError(f"not a file of cases: {error}") from None
        missing = 0
        for area, rows in by_area(held(str(case["id"]) for case in cases)).items():
            lost = [row.case_id for row in rows if row.is_missing]
            missing += len(lost)
            self.stdout.write(f"{area} {len(rows) - len(lost)}/{len(rows)}")
            for row in rows if options["list"] else ():
                self.stdout.write(f"  {row.case_id}: {', '.join(row.places) or '-'}")
            for case_id in lost:
                self.stdout.write(f"MISSING {case_id}")
        self.stdout.write(f"{len(cases) - missing} held, {missing} missing")
        if missing:
            raise SystemExit(1)
