"""What the commands share: their options, how they print, and their exit statuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memstudio.cli.api import Api, Refused, connected

STOPPED: Final = 130
"""Exit status after Ctrl-C, as shells have it."""
MAX_CELL: Final = 60

Action = Callable[[Api, Mapping[str, Any]], Any]
Show = Callable[[Any], Iterable[str]]


class ApiCommand(BaseCommand):
    """A command with subcommands, each of which is one or a few calls of REST."""

    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own attribute

    def add_arguments(self, parser: CommandParser) -> None:
        """The subcommands, each with the options all of them have."""
        self.common = CommandParser(add_help=False)
        self.common.add_argument("--json", action="store_true", help="print the answer as JSON")
        self.common.add_argument("--url", default="", help="a studio elsewhere; MEMORY_STUDIO_URL")
        self.common.add_argument(
            "--as", dest="acting", default="", help="secret, name or id of a key; MEMORY_STUDIO_KEY"
        )
        self.subcommands = parser.add_subparsers(dest="subcommand", required=True)
        self.add_subcommands()

    def add_subcommands(self) -> None:
        """Call ``subcommand`` for each."""

    def subcommand(self, name: str, text: str, action: Action, show: Show) -> CommandParser:
        """A subcommand: what it does, and how its answer is printed for people."""
        made: CommandParser = self.subcommands.add_parser(name, help=text, parents=[self.common])
        made.set_defaults(action=action, show=show)
        return made

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it; what is refused is one sentence, or JSON, and a status."""
        try:
            with connected(options["url"], options["acting"]) as api:
                answer = options["action"](api, options)
        except Refused as refused:
            if options["json"]:
                self._print_json({"error": refused.error})
                raise SystemExit(refused.status) from None
            raise CommandError(refused.sentence, returncode=refused.status) from None
        except KeyboardInterrupt:
            raise SystemExit(STOPPED) from None
        if answer is None:
            return
        if options["json"]:
            self._print_json(answer)
            return
        for line in options["show"](answer):
            self.stdout.write(line)

    def _print_json(self, answer: Any) -> None:
        self.stdout.write(json.dumps(answer, ensure_ascii=False, indent=2))


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """Rows under the names of their columns; long cells are cut."""
    cells = [[column.upper() for column in columns]]
    cells += [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def fields(row: Mapping[str, Any]) -> list[str]:
    """One line for each field."""
    width = max((len(name) for name in row), default=0)
    return [f"{name.ljust(width)}  {_text(value)}" for name, value in row.items()]


def _cell(value: Any) -> str:
    text = " ".join(_text(value).split())
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
