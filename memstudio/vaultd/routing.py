"""Which requests concern a sealed vault: by their address, or by what an MCP client calls.

An open vault lies in the database, and any web answers for it.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

from django.db import DatabaseError

from memory.service_threads import ServiceThreads
from memory.services.vaults import whereabouts

PAGES: Final = "/vaults"
API: Final = "/api/vaults"
MCP: Final = "/mcp"
IMPORT: Final = "import"
MOST_KNOWN: Final = 10_000
_ARGUMENTS: Final = ("vaultId", "vault_id")


def named_in(path: str) -> str | None:
    """The vault that an address names; None for one of all vaults, such as the list."""
    prefix = API if path.startswith(API) else PAGES
    reference = path[len(prefix) :].lstrip("/").partition("/")[0]
    if not reference or reference == IMPORT:
        return None
    # Pages name vaults by their ids only.
    return reference if prefix == API or _id(reference) else None


def named_by_call(body: bytes) -> list[str]:
    """The vaults that a message of an MCP client names as arguments of tools."""
    # Most calls are about memories: those are not parsed twice.
    if b"vault" not in body and b"\\u" not in body:
        return []
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return []
    return list(_references(message))


class Routing:
    """Looks up whether what is named may be sealed; ids that were looked up are remembered."""

    def __init__(self) -> None:
        self._threads = ServiceThreads(1, name="vaultd-route")
        self._known: OrderedDict[str, bool] = OrderedDict()

    async def is_sealed(self, reference: str) -> bool:
        """Whether the process that keeps keys has to be asked."""
        if reference in self._known:
            return self._known[reference]
        try:
            found = await self._threads.run(lambda _stop: whereabouts.is_sealed(reference))
        except DatabaseError:
            # The web itself tells that there is no database.
            return False
        if found is not None and _id(reference):
            # A vault is sealed or open for good; a name may become another's.
            self._known[reference] = found
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        return bool(found)

    def close(self) -> None:
        """Let go of the thread."""
        self._threads.close()


def _references(message: Any) -> Iterator[str]:
    for each in message if isinstance(message, list) else [message]:
        if not isinstance(each, dict) or each.get("method") != "tools/call":
            continue
        params = each.get("params")
        given = params.get("arguments") if isinstance(params, dict) else None
        if isinstance(given, dict):
            yield from (given[name] for name in _ARGUMENTS if isinstance(given.get(name), str))


def _id(reference: str) -> bool:
    try:
        uuid.UUID(reference)
    except ValueError:
        return False
    return True
