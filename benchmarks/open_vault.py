"""A large open vault in the tables: storing it, embedding it, searching it, removing it.

    OMP_NUM_THREADS=1 python -m benchmarks.open_vault --chunks 100000 [--server]

Through the services of the product, in a home of its own; ``--server`` starts a Postgres with
pgvector. Vectors are random ones of 384 dimensions: the time of a model is measured elsewhere.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.vault_index import QUERIES, SENTENCES, RandomVectors, resident_mb

PHRASES = ("refund policy", "运费由买家承担", "商品到着後", "数据库的备份", "検索エンジンの設計")
ABSENT = ("policy refund",)
"""All of its words are everywhere, but never in this order: the worst case, until it is refused."""
PER_DOCUMENT = 20
ROUNDS = 10
DIMS = 384


def source(*, models_dir: Path, template: str) -> RandomVectors:
    """Stands in for the model of the studio."""
    del models_dir, template
    return RandomVectors(dim=DIMS)


def bodies(count: int) -> Iterator[str]:
    """Documents of about twenty chunks, of mixed languages; every one is different."""
    chance = random.Random(11)  # noqa: S311 - the same each time
    for _ in range(count):
        parts: list[str] = []
        size = 0
        # A chunk adds 768 code points less the overlap, and cuts are made before that.
        while size < PER_DOCUMENT * 600:
            parts.append(f"{chance.choice(SENTENCES)} {chance.randrange(10**6):x} ")
            size += len(parts[-1])
        yield "".join(parts)


@contextmanager
def studio(*, with_server: bool) -> Iterator[None]:
    """A home, and a database, of this run alone."""
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ |= {
            "MEMORY_STUDIO_HOME": home,
            "DJANGO_SETTINGS_MODULE": "memstudio.settings",
            "MEMORY_STUDIO_LOG_LEVEL": "ERROR",
        }
        if with_server:
            from engine.testing import postgres_server, redis_server

            settings = {"shared_buffers": "512MB"}
            server = stack.enter_context(postgres_server.running(settings=settings))
            os.environ["DATABASE_URL"] = server.url("postgres")
            redis = stack.enter_context(redis_server.running())
            os.environ["REDIS_URL"] = redis.url
        yield


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--server", action="store_true")
    asked = parser.parse_args()
    with studio(with_server=asked.server):
        run(asked.chunks)


def run(chunks: int) -> None:
    """The life of one vault."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.MEMORY_LOCAL_SOURCES = {"multilingual-e5-small": "benchmarks.open_vault.source"}
    call_command("migrate", verbosity=0)
    from memory.principal import SYSTEM
    from memory.services import signin
    from memory.services.vaults import lifecycle
    from memory.services.vaults.lifecycle import VaultDraft

    signin.first_start()
    vault = lifecycle.create(SYSTEM, VaultDraft("library", is_sealed=False)).vault
    stored = fill(vault, chunks)
    embed(stored)
    search(vault)
    start = time.perf_counter()
    lifecycle.delete(SYSTEM, "library")
    print(f"removed in {time.perf_counter() - start:.1f} s")


def fill(vault: Any, chunks: int) -> int:
    """Store documents, one call for each; how many chunks they have."""
    from memory.models import Passage
    from memory.principal import SYSTEM
    from memory.services.vaults import assets
    from memory.services.vaults.assets import AssetDraft

    start = time.perf_counter()
    for number, body in enumerate(bodies(chunks // PER_DOCUMENT)):
        assets.put(SYSTEM, str(vault.uid), AssetDraft(body, f"Note {number}"))
    took = time.perf_counter() - start
    stored = Passage.objects.filter(vault_id=vault.pk).count()
    print(f"stored {stored} chunks in {took:.1f} s: {stored / took:.0f} chunks/s")
    return stored


def embed(stored: int) -> None:
    """Run the job that fills the vectors."""
    from memory import jobs
    from memory.models import Job
    from memory.tasks import HANDLERS

    start = time.perf_counter()
    job = Job.objects.filter(kind="reindex").order_by("-created_at")[0]
    jobs.run(job.pk, HANDLERS)
    took = time.perf_counter() - start
    print(f"vectors stored in {took:.1f} s: {stored / took:.0f}/s without the model")


def search(vault: Any) -> None:
    """Ask in every mode, after a first round that reads the index into memory."""
    from engine.errors import InvalidQuery
    from engine.types import Match, Mode
    from memory.principal import SYSTEM
    from memory.services.vaults import searching
    from memory.services.vaults.searching import SearchRequest

    before = resident_mb()
    plans = (
        ("keyword", Mode.KEYWORD, Match.ANY, QUERIES),
        ("vector", Mode.VECTOR, Match.ANY, QUERIES),
        ("hybrid", Mode.HYBRID, Match.ANY, QUERIES),
        ("keyword, all", Mode.KEYWORD, Match.ALL, QUERIES),
        ("hybrid, phrase", Mode.HYBRID, Match.PHRASE, PHRASES),
        ("hybrid, phrase that is nowhere", Mode.HYBRID, Match.PHRASE, ABSENT),
    )
    for name, mode, match, queries in plans:

        def ask(text: str, mode: Mode = mode, match: Match = match) -> None:
            with suppress(InvalidQuery):
                searching.find(SYSTEM, SearchRequest(str(vault.uid), text, mode, match))

        first = timed(ask, queries[0])
        settle()
        rounds = 1 if queries is ABSENT else ROUNDS
        took = [timed(ask, text) for text in queries for _ in range(rounds)]
        p50, most = statistics.median(took), max(took)
        print(f"{name}: first {first:.0f} ms, p50 {p50:.1f} ms, max {most:.1f} ms")
    print(f"memory of the indexes: {resident_mb() - before:.0f} MB")


def settle() -> None:
    """Wait until threads have read both indexes into memory and made the graph."""
    from memory import local_stores, wiring
    from memory.services import embedding

    keyword: Any = wiring.keyword_index()
    keyword.settle()
    index = embedding.active_index()
    if index is not None:
        store: Any = wiring.store_for(index)
        local_stores.maintain(store, lambda done, total, what: None)
        if hasattr(store, "settle"):
            store.settle(600)


def timed(ask: Callable[[str], None], text: str) -> float:
    """Milliseconds of one search."""
    start = time.perf_counter()
    ask(text)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
