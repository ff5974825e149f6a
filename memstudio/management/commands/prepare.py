"""``manage.py prepare``: bring the database up to date, and end. For upgrades of many hosts."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from memstudio import startup


class Command(BaseCommand):
    """Every start does the same; this one serves nothing."""

    help = "Bring the database up to date."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own attribute

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What to do about keys that are not the installation's."""
        parser.add_argument(
            "--accept-new-keys",
            action="store_true",
            help="the keys of this process are from now on the installation's: credentials of "
            "other services must be entered again, and everyone signs in again",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it, and make the first key and the studio user."""
        from memory.services import signin

        startup.prepare(accept_new_keys=options["accept_new_keys"])
        signin.first_start()
        self.stdout.write("The database is up to date.")
