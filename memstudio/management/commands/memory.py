"""``manage.py memory …``: the memories, as REST has them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandParser

from memory.type_names import current_type
from memstudio.cli import exchange, files, vaults
from memstudio.cli.api import USAGE, Api, Refused
from memstudio.cli.command import ApiCommand, fields, table

COLUMNS: Final = ("id", "type", "key", "content")
FOUND: Final = ("id", "score", "type", "key", "content")
STRATEGIES: Final = ("exact", "semantic", "hybrid", "recent")


class Command(ApiCommand):
    """Add, find, read, change, remove, export and import memories."""

    help = "Work with memories."

    def add_subcommands(self) -> None:
        """One for each thing that can be done."""
        self._reading()
        self._writing()
        self._moving()

    def _reading(self) -> None:
        found = self.subcommand("search", "find memories", _search, _show_found)
        found.add_argument(
            "words", nargs="+", help="QUERY; VAULT or OWNER before it: by words only"
        )
        found.add_argument("--strategy", choices=STRATEGIES, help="default hybrid")
        found.add_argument(
            "--match", "--match-mode", choices=("any", "all", "phrase"), default="any"
        )
        found.add_argument("--limit", type=int, default=20)
        found.add_argument("--cards-only", action="store_true", help="in a vault: no memories")
        found.add_argument("--max-tokens", type=int, default=2000, help="token budget")
        found.add_argument("--scope", choices=("apiKey", "global"), default="apiKey")
        _narrowed(found)
        listed = self.subcommand("list", "list memories, newest first", _list, _show_list)
        listed.add_argument("--q", help="only those that hold this text")
        listed.add_argument("--state", help="live, hidden, archived, trash or all")
        listed.add_argument("--limit", type=int, default=50)
        listed.add_argument("--offset", type=int)
        _narrowed(listed)
        for name, text, action in (
            ("get", "one memory", _get),
            ("history", "what a memory was before each change", _history),
        ):
            show = fields if name == "get" else _show_history
            self.subcommand(name, text, action, show).add_argument("id")

    def _writing(self) -> None:
        added = self.subcommand("add", "store a memory; the same key is updated", _add, fields)
        added.add_argument("content")
        added.add_argument("--owner", help="name or id of the key it belongs to")
        changed = self.subcommand("update", "change a memory", _update, fields)
        changed.add_argument("id")
        changed.add_argument("--content")
        for parser in (added, changed):
            parser.add_argument("--key", help="a short stable name")
            parser.add_argument("--type", help="factual, episodic, procedural or semantic")
            parser.add_argument("--session")
            parser.add_argument("--metadata", help="a JSON object")
            parser.add_argument("--expires", help="ISO 8601 time")
            parser.add_argument("--pinned", action="store_true", default=None)
        removed = self.subcommand("delete", "put a memory in the trash", _delete, _show_nothing)
        removed.add_argument("id")
        removed.add_argument("--purge", action="store_true", help="erase it for good")
        self.subcommand("restore", "bring it back", _restore, fields).add_argument("id")

    def _moving(self) -> None:
        out = self.subcommand("export", "write memories to a file", exchange.write, fields)
        out.add_argument("file", type=Path, nargs="?", help="standard output without one")
        out.add_argument("--format", choices=exchange.EXPORTS, help="else as the file is called")
        out.add_argument("--q", help="only those that hold this text")
        out.add_argument("--state", help="kept (live or archived), live, hidden, archived, trash")
        _narrowed(out)
        into = self.subcommand("import", "read a file", exchange.read, exchange.show_read)
        into.add_argument("file", type=Path, help="or a folder of Markdown files")
        into.add_argument("--format", choices=exchange.FORMATS, default="auto")
        into.add_argument("--owner", help="made when it does not exist")
        into.add_argument("--dry-run", action="store_true", help="only tell what would come in")
        into.add_argument("--assistant", action="store_true", help="its turns of chats as well")


def _narrowed(parser: CommandParser) -> None:
    parser.add_argument("--owner", help="name or id of a key")
    parser.add_argument("--type")
    parser.add_argument("--session")


def _search(api: Api, options: Mapping[str, Any]) -> Any:
    *owners, query = options["words"]
    if len(owners) > 1:
        raise Refused(USAGE, {"code": "usage", "message": "Put the query in quotation marks."})
    if owners and vaults.is_vault(api, owners[0]):
        return vaults.call(api, "POST", owners[0], "/search", _in_vault(options, query))
    strategy = options["strategy"] or ("exact" if owners else "hybrid")
    if strategy in ("semantic", "hybrid"):
        files.warm_up(api)
    kind = _type(options)
    body = {
        "query": query,
        "strategy": strategy,
        "match": options["match"],
        "limit": options["limit"],
        "maxTokens": options["max_tokens"],
        "scope": options["scope"],
        "apiKeyId": owners[0] if owners else options["owner"],
        "sessionId": options["session"],
        "types": [kind] if kind else [],
    }
    return api.call("POST", "memory/retrieve-preview", body)


def _in_vault(options: Mapping[str, Any], query: str) -> dict[str, Any]:
    """The basic search of a vault: by words, each document once."""
    if options["strategy"] not in (None, "exact"):
        message = "A vault is searched by words here; rag search has the other modes."
        raise Refused(USAGE, {"code": "usage", "message": message})
    return {
        "query": query,
        "mode": "bm25",
        "matchMode": options["match"],
        "limit": options["limit"],
        "cardsOnly": options["cards_only"],
        "grouped": True,
    }


def _list(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call(
        "GET",
        "memory",
        apiKeyId=options["owner"],
        type=_type(options),
        sessionId=options["session"],
        q=options["q"],
        state=options["state"],
        limit=options["limit"],
        offset=options["offset"],
    )


def _get(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("GET", f"memory/{options['id']}")["memory"]


def _history(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("GET", f"memory/{options['id']}/history")


def _add(api: Api, options: Mapping[str, Any]) -> Any:
    content = options["content"]
    # Without a key of its own, the same text is the same memory.
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    body = {"content": content, **_sent(options), "apiKeyId": options["owner"]}
    body.setdefault("key", f"note:{digest}")
    kept = {name: value for name, value in body.items() if value is not None}
    return api.call("POST", "memory", kept)


def _update(api: Api, options: Mapping[str, Any]) -> Any:
    body = _sent(options)
    if options["content"] is not None:
        body["content"] = options["content"]
    api.call("PUT", f"memory/{options['id']}", body)
    return _get(api, options)


def _delete(api: Api, options: Mapping[str, Any]) -> Any:
    purge = "true" if options["purge"] else None
    return api.call("DELETE", f"memory/{options['id']}", purge=purge)


def _restore(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("POST", f"memory/{options['id']}/restore")["memory"]


def _sent(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given, under the names of REST."""
    given = {
        "key": options["key"],
        "type": _type(options),
        "sessionId": options["session"],
        "metadata": _metadata(options["metadata"]),
        "expiresAt": options["expires"],
        "pinned": options["pinned"],
    }
    return {name: value for name, value in given.items() if value is not None}


def _type(options: Mapping[str, Any]) -> str | None:
    if options["type"] is None:
        return None
    kind, warning = current_type(options["type"])
    if warning:
        sys.stderr.write(f"Warning: {warning}\n")
    return kind


def _metadata(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        message = "The metadata is not a JSON object."
        raise Refused(USAGE, {"code": "usage", "message": message}) from None


def _show_found(answer: Any) -> list[str]:
    if "results" in answer:
        return vaults.show_found(answer)
    rows = [{**row, "score": f"{row['score']:.3f}"} for row in answer["memories"]]
    reason = answer["resolution"]["fallbackReason"]
    notes = [f"({reason})"] if reason else []
    return [*(table(rows, FOUND) if rows else ["Nothing was found."]), *notes]


def _show_list(answer: Any) -> list[str]:
    return [*table(answer["data"], COLUMNS), f"{len(answer['data'])} of {answer['total']}"]


def _show_history(answer: Any) -> list[str]:
    return table(answer["data"], ("revision", "replacedAt", "replacedBy", "action", "content"))


def _show_nothing(_answer: Any) -> list[str]:
    return []
