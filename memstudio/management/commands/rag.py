"""``manage.py rag …``: reading files into a vault, searching it, asking it; local models."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandParser

from memory.model_commands import ModelCommands
from memstudio.cli import vault_services, vaults
from memstudio.cli.api import USAGE, Api, Refused
from memstudio.cli.command import ApiCommand

STEP_S: Final = 20
"""Of so much work at a time one is told how far it is."""


class Command(ApiCommand):
    """The second seed's commands, as it prints them."""

    help = "Search and ask vaults; install local models."
    requires_migrations_checks = False

    def add_subcommands(self) -> None:
        """One for each thing that can be done."""
        ingest = self.subcommand("ingest", "make cards of text files", _ingest, _show_ingested)
        ingest.add_argument("vault", help="id or name")
        ingest.add_argument("files", nargs="+", type=Path, metavar="file")
        ingest.add_argument("--title", default="", help="default: the name of the file")
        found = self.subcommand("search", "find chunks", _search, vaults.show_found)
        _searching(found, "query")
        asked = self.subcommand("ask", "answer a question from a vault", _ask, vaults.show_answer)
        _searching(asked, "question")
        index = self.subcommand("index", "build the index now", _index, _show_index)
        index.add_argument("vault", help="id or name")
        status = self.subcommand("status", "state of a vault", _status, vaults.show_status)
        status.add_argument("vault", help="id or name")
        vault_services.add(self)
        ModelCommands.add(self.subcommands)

    def handle(self, *args: Any, **options: Any) -> None:
        """Models are this machine's affair; everything else is REST."""
        if options["subcommand"] in ModelCommands.NAMES:
            ModelCommands(self.stdout, self.stderr).run(options["subcommand"], options)
            return
        super().handle(*args, **options)


def _searching(parser: CommandParser, what: str) -> None:
    parser.add_argument("vault", help="id or name")
    parser.add_argument(what)
    parser.add_argument("--mode", choices=vaults.MODES, default="hybrid")
    parser.add_argument("--match-mode", "--match", choices=vaults.MATCHES, default="any")
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("--cards-only", action="store_true")
    parser.add_argument("--no-rerank", action="store_true")


def _ingest(api: Api, options: Mapping[str, Any]) -> Any:
    files: list[Path] = options["files"]
    if options["title"] and len(files) > 1:
        raise Refused(USAGE, {"code": "usage", "message": "--title is for one file."})
    stored: list[Any] = []
    for file in files:
        if len(files) > 1 and sys.stderr.isatty():
            sys.stderr.write(f"\r{len(stored)} of {len(files)} ")
        stored.append(_ingest_one(api, options, file))
    return {"data": stored}


def _ingest_one(api: Api, options: Mapping[str, Any], file: Path) -> Any:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise vaults.unusable(file, error) from None
    body = {
        "name": str(file),
        "title": options["title"] or file.name,
        "contentBase64": base64.b64encode(data).decode(),
    }
    try:
        return vaults.call(api, "POST", options["vault"], "/ingest", body)
    except Refused as refused:
        # What was read before it is stored, and is unchanged when the command is repeated.
        message = f"{file}: {refused.error.get('message', '')}"
        raise Refused(refused.status, {**refused.error, "message": message}) from None


def _body(options: Mapping[str, Any], what: str) -> dict[str, Any]:
    return {
        what: options[what],
        "mode": options["mode"],
        "matchMode": options["match_mode"],
        "limit": options["limit"],
        "cardsOnly": options["cards_only"],
        "rerank": not options["no_rerank"],
    }


def _search(api: Api, options: Mapping[str, Any]) -> Any:
    return vaults.call(api, "POST", options["vault"], "/search", _body(options, "query"))


def _ask(api: Api, options: Mapping[str, Any]) -> Any:
    return vaults.call(api, "POST", options["vault"], "/ask", _body(options, "question"))


def _index(api: Api, options: Mapping[str, Any]) -> Any:
    made = 0
    while True:
        body = {"budgetSeconds": STEP_S}
        answer = vaults.call(api, "POST", options["vault"], "/index", body)
        made += answer["made"]
        if answer["complete"]:
            return {**answer, "made": made}
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{answer['embedded']} of {answer['chunks']} vectors ")


def _status(api: Api, options: Mapping[str, Any]) -> Any:
    return vaults.call(api, "GET", options["vault"])


def _show_ingested(answer: Any) -> list[str]:
    return [
        f"{row['outcome']}  {row['title']}  ({row['id']} r{row['revision']}, {row['size']} bytes)"
        for row in answer["data"]
    ]


def _show_index(answer: Any) -> list[str]:
    return [
        f"{answer['chunks']} chunks, {answer['embedded']} vectors ({answer['made']} new) "
        f"by {answer['model']}"
    ]
