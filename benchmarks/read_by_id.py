"""``make bench ARGS=read-by-id``: a memory read by its id, from the cache and past it."""

from __future__ import annotations

import os
import secrets
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence

import django

READS = 3000
Read = Callable[[uuid.UUID], object]


def main() -> None:
    """Measure on a SQLite file; with ``DATABASE_URL`` on that (empty) database."""
    with tempfile.TemporaryDirectory(prefix="memory-studio-bench-") as home:
        os.environ |= {
            "MEMORY_STUDIO_HOME": home,
            "MEMORY_STUDIO_SECRET_KEY": secrets.token_urlsafe(48),
            "DJANGO_SETTINGS_MODULE": "memstudio.settings",
        }
        django.setup()
        for name, times in _measured().items():
            p95 = statistics.quantiles(times, n=20)[-1]
            print(f"{name:44} p50 {statistics.median(times):5.0f} µs   p95 {p95:5.0f} µs")


def _measured() -> dict[str, list[float]]:
    from django.core.management import call_command

    from memory.models import Memory
    from memory.principal import SYSTEM
    from memory.services import keys, memories, row_cache
    from memory.services.drafts import MemoryDraft

    call_command("migrate", verbosity=0)
    _key, secret = keys.create(SYSTEM, "bench")
    caller = keys.authenticate(secret)
    drafts = [MemoryDraft(content=f"Memory number {n}", key=f"k{n}") for n in range(200)]
    ids = [memories.create(caller, draft)[0].pk for draft in drafts]
    never = row_cache.RowCache(life_s=0)
    reads: dict[str, Read] = {
        "the object relational mapper": lambda pk: (
            Memory.objects.select_related("api_key").filter(pk=pk, api_key=caller.owner).first()
        ),
        "the cache, not there": never.read,
        "the cache, there (the row is compared)": row_cache.CACHE.read,
        "the whole service, from the cache": lambda pk: memories.get(caller, pk),
    }
    return _in_turn(reads, ids)


def _in_turn(reads: dict[str, Read], ids: Sequence[uuid.UUID]) -> dict[str, list[float]]:
    """Microseconds of each read; one after another, so that noise is shared."""
    taken: dict[str, list[float]] = {name: [] for name in reads}
    for turn in range(READS):
        for name, read in reads.items():
            began = time.perf_counter()
            read(ids[turn % len(ids)])
            taken[name].append((time.perf_counter() - began) * 1e6)
    return taken
