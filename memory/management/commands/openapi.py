"""``manage.py openapi``: write ``docs/openapi.json`` anew, or check that it is current."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    """The description of the REST API, as clients and their generators read it."""

    help = "Write docs/openapi.json, the OpenAPI description of the REST API."
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Only look, or print, instead of writing."""
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--check", action="store_true", help="fail when the file is not current")
        what.add_argument("--print", action="store_true", help="print it instead")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write, print or compare."""
        from memory.api import snapshot

        text = snapshot.text()
        if options["print"]:
            self.stdout.write(text, ending="")
        elif not options["check"]:
            snapshot.path().write_text(text, encoding="utf-8")
            self.stdout.write(f"{snapshot.path().name} is current")
        elif not snapshot.is_current(text):
            raise CommandError("docs/openapi.json is not current: run manage.py openapi")
