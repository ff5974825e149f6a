"""What the commands of vaults share: naming a vault, passphrases, and how results are printed."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from memstudio import env
from memstudio.cli.api import USAGE, Api, Refused

MODES: Final = ("bm25", "keyword", "vector", "hybrid")
MATCHES: Final = ("any", "all", "phrase")
VARIABLE: Final = "MEMORY_STUDIO_PASSPHRASE"
EXCERPT: Final = 240
PLACES: Final = {"config": "config.toml", "memories": "as memories are"}
"""Where a service was chosen, when not for vaults in the studio."""


def path(vault: str, rest: str = "") -> str:
    """The address of a vault, or of something in it."""
    return f"vaults/{quote(vault, safe='')}{rest}"


def call(api: Api, method: str, vault: str, rest: str = "", body: Any = None, **query: Any) -> Any:
    """A request about a vault. Where this process answers itself, it unlocks the vault first."""
    secret = env.secret("MEMORY_STUDIO_PASSPHRASE")
    if api.keeps_keys and secret and rest != "/unlock":
        api.call("POST", path(vault, "/unlock"), {"passphrase": secret})
    try:
        return api.call(method, path(vault, rest), body, **query)
    except Refused as refused:
        if api.keeps_keys and refused.error.get("code") == "vault_locked":
            refused.error["message"] = (
                f"The vault is locked, and no studio runs that could keep it unlocked: start one, "
                f"or set {VARIABLE} for this command."
            )
            raise Refused(refused.status, refused.error) from None
        raise


def passphrase(prompt: str, *, twice: bool = False) -> str:
    """A passphrase from the environment, a terminal, or the first line of standard input.

    Never from the command line, which other users of the machine can read.
    """
    return env.secret("MEMORY_STUDIO_PASSPHRASE") or _asked(prompt, twice=twice)


def new_passphrase() -> str:
    """The passphrase that a vault is to have, likewise."""
    return env.secret("MEMORY_STUDIO_NEW_PASSPHRASE") or _asked("New passphrase", twice=True)


def _asked(prompt: str, *, twice: bool) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    text = getpass.getpass(f"{prompt}: ")
    if twice and getpass.getpass("Once more: ") != text:
        raise Refused(USAGE, {"code": "usage", "message": "These are two different passphrases."})
    return text


def opening(options: Mapping[str, Any]) -> dict[str, str]:
    """What opens a vault, as it was asked for."""
    if options["recovery"]:
        return {"recoveryKey": passphrase("Recovery key")}
    return {"passphrase": passphrase("Passphrase")}


def unusable(file: object, error: OSError | UnicodeDecodeError) -> Refused:
    """A file that cannot be read or written."""
    reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
    return Refused(USAGE, {"code": "unreadable", "message": f"{file}: {reason.lower()}."})


def is_vault(api: Api, name: str) -> bool:
    """Whether the caller knows a vault of this id or name."""
    vaults = api.call("GET", "vaults")["data"]
    return any(name in (row["id"], row["name"]) for row in vaults)


def show_found(answer: Any) -> list[str]:
    """A result for people: each chunk under its label."""
    lines: list[str] = []
    for hit in answer["results"]:
        lines.append(
            f"[{hit['label']}] {hit['score']:.4f}  {hit['title'] or hit['kind']}"
            f"  ({hit['id']} r{hit['revision']}, bytes {hit['byte_start']}-{hit['byte_end']})"
        )
        text = " ".join(hit["text"].split())
        lines.append(f"     {text if len(text) <= EXCERPT else text[: EXCERPT - 1] + '…'}")
    lines = lines or ["Nothing was found."]
    return [*lines, *(f"({warning})" for warning in answer["warnings"])]


def show_answer(answer: Any) -> list[str]:
    """An answer for people, with its sources."""
    if not answer["answer"]:
        return ["The vault does not answer this question.", *show_found(answer)]
    cited = set(answer["citations"])
    sources = [hit for hit in answer["results"] if hit["label"] in cited]
    return [
        answer["answer"],
        "",
        *show_found({"results": sources, "warnings": answer["warnings"]}),
        "Citations prove that the answer refers to these passages, not that it is true.",
    ]


def _extent(index: Any, limits: Any) -> str:
    """How much is indexed; of how much, where that has bounds."""
    if limits is None:
        return f"in the database, {index['chunks']} chunks, {index['textBytes']} bytes"
    return (
        f"{index['chunks']} of {limits['chunks']} chunks, "
        f"{index['textBytes']} of {limits['textBytes']} bytes"
    )


def show_status(answer: Any) -> list[str]:
    """The state of a vault for people."""
    index, limits, embedding = answer["index"], answer["limits"], answer["embedding"]
    state = "unlocked" if answer["unlocked"] else "locked"
    kinds = ", ".join(f"{count} {kind}" for kind, count in answer["assets"].items() if count)
    ready = "ready" if index["ready"] else "not built"
    lines = [
        f"{answer['name']} ({answer['id']}): {'sealed, ' + state if answer['sealed'] else 'open'}",
        f"holds      {kinds or 'nothing'}",
        f"index      {ready}, {_extent(index, limits)}",
        f"vectors    {index['embedded']}",
        f"embedding  {embedding['backend']}, {embedding['model']}{_place(embedding)}",
        f"answers    {_service(answer['generation'], 'not configured')}",
        f"ranking    {_service(answer['rerank'], 'the light rule')}",
    ]
    if answer["deviceOnly"]:
        lines.append("device-only: nothing is sent to another machine")
    return [*lines, *(f"({warning})" for warning in answer["warnings"])]


def _service(told: Mapping[str, str] | None, without: str) -> str:
    return without if told is None else f"{told['model']}{_place(told)}"


def _place(told: Mapping[str, str]) -> str:
    """Where a service is, where it was chosen, and why it cannot be asked."""
    if not told["origin"]:
        return ""
    chosen = PLACES.get(told["origin"]) or f"studio: {told['provider']}"
    problem = f", cannot be used: {told['problem']}" if told["problem"] else ""
    return f" at {told['host'] or '?'} ({chosen}){problem}"
