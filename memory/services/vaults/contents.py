"""How an asset's texts are written into its row, and read out of it: sealed or plain.

In an open vault private content, credentials and files are sealed with the key of the installation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from engine.vault.sealing import Place, Sealer
from memory import secretbox, vault_wiring
from memory.models import Vault, VaultAsset, VaultAssetRevision

HEAD: Final = "head"
BODY: Final = "body"

Row: TypeAlias = VaultAsset | VaultAssetRevision


@dataclass(frozen=True, slots=True)
class Content:
    """What an asset says. ``source`` is where it was read from, and may be empty."""

    title: str
    body: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.body.encode("utf-8"))

    def __repr__(self) -> str:
        return "Content(…)"


class Contents:
    """Reads and writes the texts of one vault. A sealed one has to be unlocked.

    Raises ``VaultError`` (``vault_locked``, ``needs_embedded``) when it is not.
    """

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self._vault = str(vault.uid)
        self._sealer: Sealer | None = None
        if vault.is_sealed:
            keeper = vault_wiring.require_keeper()
            self._sealer = keeper.sealer(self._vault, vault.lock_generation)

    def source_key(self, kind: str, source: str) -> str:
        """What stands for a source in the row of a kind; empty for none.

        That of a sealed vault tells nobody without the key which source it is.
        """
        if not source:
            return ""
        named = f"{kind}\0{source}"
        if self._sealer is not None:
            return self._sealer.digest(named)
        return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()

    def write(self, row: VaultAsset, content: Content) -> None:
        """Put the texts into an unsaved row, for its present revision."""
        row.size = content.size
        row.source_key = self.source_key(row.kind, content.source)
        head = {"meta": dict(content.meta), "source": content.source}
        if self._sealer is not None:
            whole = json.dumps({"title": content.title, **head}, ensure_ascii=False)
            row.sealed_head = self._sealer.seal_text(whole, self._place(row, HEAD))
            row.sealed_body = self._sealer.seal_text(content.body, self._place(row, BODY))
            return
        row.title, row.meta = content.title, head
        is_plain = row.kind in VaultAsset.SEARCHABLE
        row.body = content.body if is_plain else secretbox.seal(content.body)

    def head(self, row: Row) -> Content:
        """Title, metadata and source; the body is left where it is."""
        if self._sealer is None:
            return Content(row.title, "", row.meta.get("meta", {}), row.meta.get("source", ""))
        head = json.loads(self._sealer.open_text(bytes(row.sealed_head), self._place(row, HEAD)))
        return Content(head["title"], "", head["meta"], head["source"])

    def whole(self, row: Row) -> Content:
        """Everything."""
        head = self.head(row)
        return Content(head.title, self.body(row), head.meta, head.source)

    def body(self, row: Row) -> str:
        """The body."""
        if self._sealer is not None:
            return self._sealer.open_text(bytes(row.sealed_body), self._place(row, BODY))
        is_plain = _asset(row).kind in VaultAsset.SEARCHABLE
        return row.body if is_plain else secretbox.open_sealed(row.body)

    def _place(self, row: Row, name: str) -> Place:
        return Place(self._vault, str(_asset(row).pk), row.revision, name)


def _asset(row: Row) -> VaultAsset:
    return row if isinstance(row, VaultAsset) else row.asset
