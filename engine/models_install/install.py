"""Installs and removes models of the hub: every file checked, the manifest last."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from engine.embed.catalogue import ModelEntry
from engine.embed.installed import MANIFEST, folder_of, is_installed
from engine.models_install.download import Downloader, Wanted
from engine.models_install.errors import InstallFailed
from engine.models_install.lock import held
from engine.models_install.origin import Origin
from engine.net.client import Limits
from engine.net.errors import HttpFailed, UrlBlocked

CARD = "MODEL_CARD.md"
NOTICE = "NOTICE"
CARD_LIMITS = Limits(total_s=30.0, retries=0, max_bytes=1 << 20)
SPARE_BYTES = 64 << 20
"""Kept free on the disk beyond the model itself."""

Progress = Callable[[int, int, str], None]
"""Told the bytes that are there, the bytes of the whole model, and the file in hand. May raise
(``Cancelled``): what is there stays for the next time."""


def silent(_done: int, _total: int, _path: str) -> None:
    """A progress callback for callers that show none."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What an installation did. ``downloaded`` is empty when every file was already there."""

    folder: Path
    downloaded: tuple[str, ...]
    has_card: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is written beside the files. ``terms`` are those that were accepted, if any."""

    id: str
    repository: str
    revision: str
    licence: str
    terms: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs into ``models_dir`` with a downloader from an origin."""

    models_dir: Path
    downloader: Downloader
    origin: Origin = field(default_factory=Origin)

    def install(
        self, entry: ModelEntry, *, accepts_terms: bool = False, progress: Progress = silent
    ) -> Installed:
        """Make every file of a model be there. Raises ``InstallFailed``.

        Files that are there already are checked and kept, and one that differs ends it.
        """
        _check(entry, accepts_terms)
        folder = folder_of(self.models_dir, entry)
        with _written(), held(self.models_dir, entry.id):
            folder.mkdir(parents=True, exist_ok=True)
            _check_space(folder, entry)
            downloaded = self._files(entry, folder, progress)
            has_card = self._papers(entry, folder)
            _write_manifest(entry, folder)
        return Installed(folder, downloaded, has_card)

    def remove(self, entry: ModelEntry) -> int:
        """Delete an installed model and its partial files; how many bytes were freed.

        Raises ``InstallFailed`` (``model_not_installed``, ``packaged_model``).
        """
        if entry.is_packaged:
            raise InstallFailed("This model belongs to a package.", code="packaged_model")
        folder = folder_of(self.models_dir, entry)
        if not folder.is_dir():
            raise InstallFailed("This model is not installed.", code="model_not_installed")
        with _written(), held(self.models_dir, entry.id):
            freed = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            # Without its manifest a half-removed model counts as not installed.
            (folder / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(folder)
        return freed

    def _files(self, entry: ModelEntry, folder: Path, progress: Progress) -> tuple[str, ...]:
        done, downloaded = 0, []
        for file in entry.files:
            before = done

            def heard(size: int, before: int = before, path: str = file.path) -> None:
                progress(before + size, entry.bytes, path)

            url = self.origin.url(entry, file.path)
            wanted = Wanted(url, folder / file.path, file.bytes, file.sha256)
            if self.downloader.fetch(wanted, heard):
                downloaded.append(file.path)
            done += file.bytes
        return tuple(downloaded)

    def _papers(self, entry: ModelEntry, folder: Path) -> bool:
        """Write the notice and the upstream card; False when the card cannot be had."""
        if is_installed(self.models_dir, entry):
            return (folder / CARD).exists()
        terms = entry.terms
        lines = [entry.title, f"Licence: {entry.licence}"]
        lines += [f"Source: {entry.repository}, revision {entry.revision}"]
        lines += [terms.notice, terms.url, *terms.also] if terms else []
        (folder / NOTICE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        if not entry.card:
            return False
        try:
            card = self._card(entry)
        except (InstallFailed, HttpFailed, UrlBlocked):
            return False
        (folder / CARD).write_bytes(card)
        return True

    def _card(self, entry: ModelEntry) -> bytes:
        url = self.origin.url(entry, entry.card)
        with self.downloader.client.stream(url, limits=CARD_LIMITS, max_redirects=5) as answer:
            return b"".join(answer.chunks)


def _check(entry: ModelEntry, accepts_terms: bool) -> None:
    if entry.is_packaged:
        raise InstallFailed(
            "This model comes with its package; there is nothing to install.",
            code="packaged_model",
        )
    if entry.terms is not None and not accepts_terms:
        raise InstallFailed(
            f"The terms of this model have to be accepted first: {entry.terms.url}",
            code="terms_not_accepted",
        )


def _check_space(folder: Path, entry: ModelEntry) -> None:
    there = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    needed = max(entry.bytes - there, 0)
    if needed and shutil.disk_usage(folder).free < needed + SPARE_BYTES:
        raise InstallFailed(
            f"The disk has no room for {needed // 1_000_000} MB more.", code="disk_full"
        )


def _write_manifest(entry: ModelEntry, folder: Path) -> None:
    manifest = Manifest(
        id=entry.id,
        repository=entry.repository,
        revision=entry.revision,
        licence=entry.licence,
        terms=entry.terms.url if entry.terms else "",
        files={file.path: file.sha256 for file in entry.files},
    )
    part = folder / f"{MANIFEST}.part"
    part.write_text(json.dumps(asdict(manifest), indent=1) + "\n", encoding="utf-8")
    part.replace(folder / MANIFEST)


@contextmanager
def _written() -> Iterator[None]:
    """A disk that cannot be written, as ``InstallFailed``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InstallFailed(
            f"The model cannot be written: {reason}.", code="write_failed"
        ) from error
