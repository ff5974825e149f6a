"""A full sealed vault through the service: storing, the first search, searches, and a lock.

python -m benchmarks.vault_service --chunks 10000

Sealing, decryption, rights, audit rows and reranking are part of it; vectors are random ones, for
the time of a model is measured elsewhere.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.vault_index import QUERIES, ROUNDS, RandomVectors, documents, resident_mb
from engine.types import Mode

if TYPE_CHECKING:
    from memory.services.vaults.lifecycle import VaultDraft

SOURCE = "benchmarks.vault_service.source"


def source(*, models_dir: Path, template: str) -> RandomVectors:
    """Stands in for the packaged model."""
    del models_dir, template
    return RandomVectors(dim=384)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory-studio-bench-") as home:
        os.environ.update(MEMORY_STUDIO_HOME=home, DJANGO_SETTINGS_MODULE="memstudio.settings")
        _set_up()
        _measure(asked.chunks)


def _set_up() -> None:
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.MEMORY_LOCAL_SOURCES = {"multilingual-e5-small": SOURCE}
    call_command("migrate", verbosity=0)
    from memory.services import signin

    signin.first_start()


def _measure(count: int) -> None:
    from memory.principal import SYSTEM
    from memory.services.vaults import lifecycle

    # Dictionaries are loaded by a small vault, so that only what the full one takes is measured.
    small, vault = (str(lifecycle.create(SYSTEM, _draft(name)).vault.uid) for name in "ab")
    _store(small, 100)
    _found(small, QUERIES[0], Mode.HYBRID)
    lifecycle.lock(SYSTEM, small)
    started = time.perf_counter()
    _store(vault, count)
    print(f"{count} cards stored in {time.perf_counter() - started:.1f} s")
    gc.collect()
    before = resident_mb()
    started = time.perf_counter()
    _found(vault, QUERIES[0], Mode.KEYWORD)
    print(f"first search by words, decrypting: {time.perf_counter() - started:.1f} s")
    _found(vault, QUERIES[0], Mode.HYBRID)
    for mode in (Mode.KEYWORD, Mode.HYBRID):
        took: list[float] = []
        for text in QUERIES * ROUNDS:
            started = time.perf_counter()
            _found(vault, text, mode)
            took.append((time.perf_counter() - started) * 1000)
        print(f"{mode.value}: p50 {statistics.median(took):.1f} ms, max {max(took):.1f} ms")
    full = resident_mb()
    started = time.perf_counter()
    lifecycle.lock(SYSTEM, vault)
    print(f"lock: {(time.perf_counter() - started) * 1000:.0f} ms")
    gc.collect()
    print(f"memory: {full - before:.0f} MB in use, {resident_mb() - before:.0f} MB after the lock")


def _draft(name: str) -> VaultDraft:
    from memory.services.vaults.lifecycle import VaultDraft

    return VaultDraft(name, passphrase="only for this run")  # noqa: S106


def _store(vault: str, count: int) -> None:
    from django.db import transaction

    from memory.principal import SYSTEM
    from memory.services.vaults import assets
    from memory.services.vaults.assets import AssetDraft

    with transaction.atomic():
        for document in documents(count):
            assets.put(SYSTEM, vault, AssetDraft(document.body, document.title))


def _found(vault: str, text: str, mode: Mode) -> None:
    from memory.principal import SYSTEM
    from memory.services.vaults import searching

    if not searching.find(SYSTEM, searching.SearchRequest(vault, text, mode)).found:
        raise RuntimeError(f"nothing was found for {text}")


if __name__ == "__main__":
    main()
