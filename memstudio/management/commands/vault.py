"""``manage.py vault …``: the life of vaults and what lies in them, as REST has it."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from memstudio.cli import vaults
from memstudio.cli.api import USAGE, Api, Refused
from memstudio.cli.command import ApiCommand, fields, table

COLUMNS: Final = ("name", "sealed", "unlocked", "deviceOnly", "role", "apiKeyName", "id")
ASSETS: Final = ("kind", "title", "revision", "size", "updatedAt", "id")
GRANTS: Final = ("apiKeyName", "role", "expiresAt", "apiKeyId")
REVISIONS: Final = ("revision", "size", "writtenAt", "replacedAt", "replacedBy")
KINDS: Final = ("memory", "card", "private", "credential", "file")
ROLES: Final = ("reader", "writer", "manager")


class Command(ApiCommand):
    """Make, unlock, lock and share vaults; put things in and take them out."""

    help = "Work with vaults."

    def add_subcommands(self) -> None:
        """One for each thing that can be done."""
        self.subcommand("list", "the vaults you may use", _list, _show_list)
        self._life()
        self._sharing()
        self._contents()

    def _life(self) -> None:
        made = self.subcommand("create", "make a vault", _create, _show_made)
        made.add_argument("name")
        made.add_argument("--open", action="store_true", help="without encryption")
        made.add_argument("--device-only", action="store_true", help="send nothing away")
        made.add_argument("--auto-lock", type=int, default=15, help="minutes without use; 0: never")
        made.add_argument("--owner", help="name or id of the key it belongs to")
        for name, text, action in (
            ("show", "state of a vault", _show),
            ("lock", "lock it at once, everywhere", _lock),
        ):
            show = vaults.show_status if name == "show" else fields
            self.subcommand(name, text, action, show).add_argument("vault", help="id or name")
        unlock = self.subcommand("unlock", "unlock it for all who may use it", _unlock, fields)
        changed = self.subcommand("passphrase", "give it another", _passphrase, _show_recovery)
        for parser in (unlock, changed):
            parser.add_argument("vault", help="id or name")
            parser.add_argument("--recovery", action="store_true", help="by the recovery key")
        ruled = self.subcommand("update", "change its rules", _update, fields)
        ruled.add_argument("vault", help="id or name")
        ruled.add_argument("--name")
        ruled.add_argument("--device-only", choices=("yes", "no"))
        ruled.add_argument("--auto-lock", type=int)
        ruled.add_argument("--model", help="a local embedding model; empty: the default")
        ruled.add_argument("--dim", type=int, help="a length of its vectors; 0: as the model gives")
        gone = self.subcommand("delete", "erase it with everything in it", _delete, _nothing)
        gone.add_argument("vault", help="id or name")
        gone.add_argument("--yes", action="store_true", help="really")

    def _sharing(self) -> None:
        given = self.subcommand("grant", "let another key in", _grant, fields)
        ended = self.subcommand("revoke", "end a key's grant", _revoke, _nothing)
        for parser in (given, ended):
            parser.add_argument("vault", help="id or name")
            parser.add_argument("key", help="name or id")
        given.add_argument("--role", choices=ROLES, default="reader")
        given.add_argument("--expires", help="ISO 8601 time")
        listed = self.subcommand("grants", "who else may use it", _grants, _show_grants)
        listed.add_argument("vault", help="id or name")

    def _contents(self) -> None:
        put = self.subcommand("put", "store a text; - reads standard input", _put, fields)
        put.add_argument("vault", help="id or name")
        put.add_argument("file", help="a file of text, or -")
        put.add_argument("--kind", choices=KINDS, default="memory")
        put.add_argument("--title", default="")
        listed = self.subcommand("assets", "what lies in it", _assets, _show_assets)
        listed.add_argument("vault", help="id or name")
        listed.add_argument("--kind", choices=KINDS)
        listed.add_argument("--limit", type=int, default=50)
        listed.add_argument("--offset", type=int, default=0)
        got = self.subcommand("get", "one asset, whole", _get, _show_asset)
        got.add_argument("--revision", type=int)
        gone = self.subcommand("remove", "put an asset in the trash", _remove, _nothing)
        gone.add_argument("--purge", action="store_true", help="erase it for good")
        back = self.subcommand("restore", "bring an asset back", _restore, _nothing)
        out = self.subcommand("export", "an encrypted file of it", _export, fields)
        out.add_argument("vault", help="id or name")
        out.add_argument("file", type=Path)
        into = self.subcommand("import", "read such a file", _import, _show_import)
        into.add_argument("file", type=Path)
        into.add_argument("--into", default="", help="a vault that is there")
        into.add_argument("--name", default="", help="of the new vault; default: as it was")
        into.add_argument("--open", action="store_true", help="make an open vault of it")
        was = self.subcommand("revisions", "what it was before", _revisions, _show_revisions)
        for parser in (got, gone, back, was):
            parser.add_argument("vault", help="id or name")
            parser.add_argument("asset", help="id")


def _list(api: Api, _options: Mapping[str, Any]) -> Any:
    return api.call("GET", "vaults")


def _create(api: Api, options: Mapping[str, Any]) -> Any:
    body = {
        "name": options["name"],
        "sealed": not options["open"],
        "deviceOnly": options["device_only"],
        "autoLockMinutes": options["auto_lock"],
        "apiKeyId": options["owner"],
    }
    if not options["open"]:
        body["passphrase"] = vaults.passphrase("Passphrase of the vault", twice=True)
    return api.call("POST", "vaults", {k: v for k, v in body.items() if v is not None})


def _show(api: Api, options: Mapping[str, Any]) -> Any:
    return vaults.call(api, "GET", options["vault"])


def _lock(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("POST", vaults.path(options["vault"], "/lock"))


def _unlock(api: Api, options: Mapping[str, Any]) -> Any:
    if api.keeps_keys:
        message = "No studio runs that could keep the vault unlocked: start one first."
        raise Refused(USAGE, {"code": "no_studio", "message": message})
    return api.call("POST", vaults.path(options["vault"], "/unlock"), vaults.opening(options))


def _passphrase(api: Api, options: Mapping[str, Any]) -> Any:
    body = {**vaults.opening(options), "newPassphrase": vaults.new_passphrase()}
    return api.call("POST", vaults.path(options["vault"], "/passphrase"), body)


def _update(api: Api, options: Mapping[str, Any]) -> Any:
    only = options["device_only"]
    body = {
        "name": options["name"],
        "deviceOnly": None if only is None else only == "yes",
        "autoLockMinutes": options["auto_lock"],
        "embeddingModel": options["model"],
        "embeddingDim": options["dim"],
    }
    changes = _given(body)
    if options["dim"] == 0:
        changes["embeddingDim"] = None
    return api.call("PUT", vaults.path(options["vault"]), changes)


def _delete(api: Api, options: Mapping[str, Any]) -> Any:
    if not options["yes"]:
        message = "This erases the vault for good; say --yes."
        raise Refused(USAGE, {"code": "usage", "message": message})
    return api.call("DELETE", vaults.path(options["vault"]))


def _grant(api: Api, options: Mapping[str, Any]) -> Any:
    body = {"key": options["key"], "role": options["role"], "expiresAt": options["expires"]}
    return api.call("PUT", vaults.path(options["vault"], "/grants"), _given(body))


def _revoke(api: Api, options: Mapping[str, Any]) -> Any:
    key = quote(options["key"], safe="")
    return api.call("DELETE", vaults.path(options["vault"], f"/grants/{key}"))


def _grants(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("GET", vaults.path(options["vault"], "/grants"))


def _put(api: Api, options: Mapping[str, Any]) -> Any:
    name = options["file"]
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise vaults.unusable(name, error) from None
    body = {
        "body": text,
        "kind": options["kind"],
        "title": options["title"],
        "source": "" if name == "-" else name,
    }
    return vaults.call(api, "POST", options["vault"], "/assets", body)


def _assets(api: Api, options: Mapping[str, Any]) -> Any:
    asked = {name: options[name] for name in ("kind", "limit", "offset")}
    return vaults.call(api, "GET", options["vault"], "/assets", **asked)


def _get(api: Api, options: Mapping[str, Any]) -> Any:
    return vaults.call(api, "GET", options["vault"], _asset(options), revision=options["revision"])


def _remove(api: Api, options: Mapping[str, Any]) -> Any:
    purge = "true" if options["purge"] else None
    return vaults.call(api, "DELETE", options["vault"], _asset(options), purge=purge)


def _restore(api: Api, options: Mapping[str, Any]) -> Any:
    return vaults.call(api, "POST", options["vault"], f"{_asset(options)}/restore")


def _revisions(api: Api, options: Mapping[str, Any]) -> Any:
    return vaults.call(api, "GET", options["vault"], f"{_asset(options)}/revisions")


def _export(api: Api, options: Mapping[str, Any]) -> Any:
    body = {"passphrase": vaults.new_passphrase()}
    answer = vaults.call(api, "POST", options["vault"], "/export", body)
    data = base64.b64decode(answer["contentBase64"])
    try:
        options["file"].write_bytes(data)
        options["file"].chmod(0o600)
    except OSError as error:
        raise vaults.unusable(options["file"], error) from None
    return {"file": str(options["file"]), "assets": answer["assets"], "bytes": len(data)}


def _import(api: Api, options: Mapping[str, Any]) -> Any:
    try:
        data = options["file"].read_bytes()
    except OSError as error:
        raise vaults.unusable(options["file"], error) from None
    body = {
        "contentBase64": base64.b64encode(data).decode(),
        "passphrase": vaults.passphrase("Passphrase of the file"),
        "into": options["into"],
        "name": options["name"],
        "sealed": not options["open"],
    }
    return api.call("POST", "vaults/import", body)


def _asset(options: Mapping[str, Any]) -> str:
    return f"/assets/{quote(options['asset'], safe='')}"


def _given(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _show_list(answer: Any) -> list[str]:
    return table(answer["data"], COLUMNS)


def _show_made(answer: Any) -> list[str]:
    lines = fields({name: answer[name] for name in COLUMNS})
    if answer["recoveryKey"]:
        lines += ["", f"Recovery key: {answer['recoveryKey']}", _KEEP]
    return lines


def _show_import(answer: Any) -> list[str]:
    counts = ", ".join(f"{answer[name]} {name}" for name in ("created", "revised", "unchanged"))
    lines = [f"{answer['name']} ({answer['id']}): {counts}"]
    if answer["recoveryKey"]:
        lines += [f"Recovery key: {answer['recoveryKey']}", _KEEP]
    return lines


def _show_recovery(answer: Any) -> list[str]:
    return [f"Recovery key: {answer['recoveryKey']}", _KEEP]


def _show_grants(answer: Any) -> list[str]:
    return table(answer["data"], GRANTS)


def _show_assets(answer: Any) -> list[str]:
    return [*table(answer["data"], ASSETS), f"{len(answer['data'])} of {answer['total']}"]


def _show_asset(answer: Any) -> list[str]:
    head = {name: answer[name] for name in (*ASSETS, "meta", "source")}
    return [*fields(head), "", answer["body"]]


def _show_revisions(answer: Any) -> list[str]:
    return table(answer["data"], REVISIONS)


def _nothing(_answer: Any) -> list[str]:
    return []


_KEEP: Final = "It is shown this once. Keep it where the passphrase is not."
