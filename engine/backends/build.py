"""From a configuration to the backend it describes."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from engine.backends.config import BackendConfig, ConfigInvalid
from engine.backends.folder import FolderBackend
from engine.backends.http import HttpBackend
from engine.backends.note_names import check_folder
from engine.backends.notion import NotionBackend
from engine.backends.obsidian import ObsidianBackend
from engine.backends.rest import Rest
from engine.backends.vault import Vault
from engine.net.client import HttpClient
from engine.net.policy import UrlPolicy
from engine.protocols import MemoryBackend

MakeClient = Callable[[UrlPolicy, ssl.SSLContext | None], HttpClient]


def build(
    config: BackendConfig, *, make_client: MakeClient, roots: Sequence[Path], owner: str
) -> MemoryBackend:
    """The backend of a configuration. ``owner`` is the id of whose memories name nobody.

    ``roots`` are the folders below which vaults may lie. Raises ``ConfigInvalid``.
    """
    name, title = config.id, config.display_name
    if config.adapter == "obsidian-folder":
        vault = Vault(vault_root(config.path, roots), check_folder(config.folder))
        return FolderBackend(name, title, vault, owner=owner)
    tls = ssl.create_default_context(cadata=config.certificate) if config.certificate else None
    rest = Rest(config.address, make_client(config.policy, tls))
    if config.adapter == "obsidian":
        return ObsidianBackend(name, title, rest, config.folder, owner=owner)
    if config.database is not None:
        return NotionBackend(name, title, rest, replace(config.database, owner=owner))
    return HttpBackend(name, title, rest, replace(config.dialect, owner=owner))


def vault_root(path: str, roots: Sequence[Path]) -> Path:
    """The folder of a vault; a relative one lies below the first root.

    Whoever may change settings over the network shall not read every folder of the machine.
    Raises ``ConfigInvalid``.
    """
    if "\0" in path or not roots:
        raise ConfigInvalid("path", "bad_folder")
    found = (roots[0] / path).resolve()
    if not any(found.is_relative_to(root.resolve()) for root in roots):
        raise ConfigInvalid("path", "bad_folder")
    return found
