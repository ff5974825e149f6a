"""Installing, listing and removing local models from the command line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError, OutputWrapper

from engine.embed import catalogue, local
from engine.embed.catalogue import ModelEntry
from engine.errors import EngineError
from engine.models_install.download import Downloader
from engine.models_install.install import Installed, Installer
from engine.models_install.origin import DOWNLOADS, HUB, Origin
from engine.net.client import HttpClient, Limits
from engine.net.proxies import Proxies
from memory import vault_wiring
from memory.model_facts import models_dir

DEFAULT_MODEL: Final = "embeddinggemma"
MEGABYTE: Final = 1_000_000
STOPPED: Final = 130
"""Exit status after Ctrl-C, as shells have it."""


class ModelCommands:
    """``rag model-install [NAME]``, ``model-list``, ``model-remove``.

    They work on ``models`` in the studio's home; a running studio offers a new model at once.
    """

    NAMES: Final = frozenset({"model-list", "model-install", "model-remove"})

    def __init__(self, stdout: OutputWrapper, stderr: OutputWrapper) -> None:
        self.stdout = stdout
        self.stderr = stderr

    @staticmethod
    def add(commands: Any) -> None:
        """One subcommand for each thing that can be done."""
        listed = commands.add_parser("model-list", help="every model of the catalogue")
        listed.add_argument("--json", action="store_true", help="print JSON")
        install = commands.add_parser("model-install", help="download a model, or go on with it")
        install.add_argument("name", nargs="?", default=DEFAULT_MODEL)
        install.add_argument("--mirror", default="", help="base URL of the exact pinned files")
        install.add_argument("--hub", default=HUB, help="another server with the hub's paths")
        install.add_argument("--accept-terms", action="store_true", help="accept the model's terms")
        remove = commands.add_parser("model-remove", help="delete an installed model")
        remove.add_argument("name")

    def run(self, command: str, options: dict[str, Any]) -> None:
        """Do it; a failure is one sentence."""
        try:
            if command == "model-list":
                self._list(models_dir(), as_json=options["json"])
            elif command == "model-remove":
                self._remove(models_dir(), options["name"])
            else:
                self._install(models_dir(), options)
        except EngineError as error:
            raise CommandError(f"{error} ({error.code})") from None

    def _list(self, models_dir: Path, *, as_json: bool) -> None:
        rows = [_row(entry, models_dir) for entry in catalogue.entries(models_dir)]
        if as_json:
            self.stdout.write(json.dumps(rows, ensure_ascii=False))
            return
        for row in rows:
            size = f"{row['bytes'] / MEGABYTE:.0f} MB"
            self.stdout.write(f"{row['id']:24} {row['state']:14} {size:>7}  {row['title']}")

    def _remove(self, models_dir: Path, name: str) -> None:
        client = HttpClient(DOWNLOADS)
        freed = Installer(models_dir, Downloader(client)).remove(catalogue.find(name, models_dir))
        self.stdout.write(f"Removed {name}, {freed / MEGABYTE:.0f} MB freed.")

    def _install(self, models_dir: Path, options: dict[str, Any]) -> None:
        entry = catalogue.find(options["name"], models_dir)
        client = HttpClient(DOWNLOADS, proxies=Proxies(environment=os.environ))
        rag = vault_wiring.config()
        mirror = options["mirror"]
        if not mirror and entry.id == vault_wiring.GEMMA:
            mirror = rag.model_download_base_url
        limits = Limits(total_s=rag.http.download_timeout_seconds, retries=rag.http.retries)
        origin = Origin(options["hub"], mirror)
        installer = Installer(models_dir, Downloader(client, limits), origin)
        accepts = self._accepts(entry, is_accepted=options["accept_terms"])
        try:
            done = installer.install(
                entry, accepts_terms=accepts, progress=_Meter(self.stderr.write)
            )
        except KeyboardInterrupt:
            self.stderr.write("Stopped. The same command goes on from here.")
            raise SystemExit(STOPPED) from None
        finally:
            client.close()
        self._report(entry, done)

    def _accepts(self, entry: ModelEntry, *, is_accepted: bool) -> bool:
        """Show the terms; whether they are accepted by the option or at the terminal."""
        if entry.terms is None:
            return is_accepted
        self.stderr.write(entry.terms.notice)
        for url in (entry.terms.url, *entry.terms.also):
            self.stderr.write(f"  {url}")
        if is_accepted or not sys.stdin.isatty():
            return is_accepted
        return input("Do you accept these terms? [y/N] ").strip().lower() in ("y", "yes")

    def _report(self, entry: ModelEntry, done: Installed) -> None:
        what = "Installed" if done.downloaded else "Already installed, checked:"
        size = f"{entry.bytes / MEGABYTE:.0f} MB"
        self.stdout.write(f"{what} {entry.id} ({size}) in {done.folder}")
        if not done.has_card:
            self.stderr.write("The upstream model card could not be fetched.")


class _Meter:
    """Says how far an installation is, at every twentieth."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._percent = -1

    def __call__(self, done: int, total: int, path: str) -> None:
        percent = done * 20 // total * 5
        if percent != self._percent:
            self._percent = percent
            self._say(f"{percent:3d} %  {done / MEGABYTE:.0f} of {total / MEGABYTE:.0f} MB  {path}")


def _row(entry: ModelEntry, models_dir: Path) -> dict[str, Any]:
    state = "packaged" if entry.is_packaged else "installed"
    if not local.is_available(entry, models_dir):
        state = "missing package" if entry.is_packaged else "not installed"
    return {
        "id": entry.id,
        "title": entry.title,
        "kind": entry.kind,
        "state": state,
        "bytes": entry.bytes,
        "dimensions": list(entry.dimensions),
        "languages": list(entry.languages),
        "licence": entry.licence,
        "terms": entry.terms.url if entry.terms else "",
        "repository": entry.repository,
        "revision": entry.revision,
    }
