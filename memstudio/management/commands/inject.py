"""``manage.py inject``: the skill file that tells AI clients of the memory's tools."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

SKILL: Final = Path(__file__).resolve().parent.parent.parent / "skill" / "SKILL.md"
FOLDERS: Final = {"claude": ".claude", "codex": ".codex", "cursor": ".cursor", "gemini": ".gemini"}
"""Where each client keeps its own things, below the person's home."""
PLACE: Final = Path("skills") / "memories" / "SKILL.md"


class Command(BaseCommand):
    """Never touches anything but its own file in the folder of a client."""

    help = "Install the skill file for AI clients."
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """For whom, and whether a file that is there is replaced."""
        parser.add_argument("client", choices=("all", *FOLDERS))
        parser.add_argument("--force", action="store_true", help="replace a file that is there")
        parser.add_argument("--home", type=Path, default=None, help="another person's home")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Say what became of each file."""
        home: Path = options["home"] or Path.home()
        names = list(FOLDERS) if options["client"] == "all" else [options["client"]]
        for name in names:
            folder = home / FOLDERS[name]
            if options["client"] == "all" and not folder.is_dir():
                self.stdout.write(f"{name}: not here")
                continue
            try:
                done = _install(folder / PLACE, force=options["force"])
            except OSError as error:
                reason = (error.strerror or "unknown error").lower()
                raise CommandError(f"{folder / PLACE} cannot be written ({reason}).") from None
            self.stdout.write(f"{name}: {done} {folder / PLACE}")


def _install(target: Path, *, force: bool) -> str:
    text = SKILL.read_text(encoding="utf-8")
    if target.exists():
        if target.read_text(encoding="utf-8", errors="replace") == text:
            return "already there:"
        if not force:
            return "left as it is (--force replaces it):"
        done = "replaced"
    else:
        done = "installed"
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(target)
    return done
