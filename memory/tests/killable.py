"""A worker process that a test kills: ``python -m memory.tests.killable begin|finish [vault]``.

``begin`` stores memories, then embeds them, and after a few batches tells that it waits to be
killed. ``finish`` does what the next start of the studio does, and prints what it found. With
``vault`` the texts lie in an open vault that an earlier version stored.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

COUNT = 96
BATCHES_BEFORE_THE_KILL = 3


def main(step: str, where: str = "") -> None:
    """Carry out one step in a process of its own."""
    import django

    django.setup()
    from django.conf import settings

    from memory.tests.watched import watch

    if step == "begin":
        _begin(watch(settings), _store_in_vault if where else _store)
    else:
        _finish(watch(settings), _found_in_vault if where else _found)


def _store() -> None:
    from memory.principal import SYSTEM
    from memory.services import exchange

    records = [{"content": f"note{place} of tea", "key": f"k{place}"} for place in range(COUNT)]
    exchange.import_records(SYSTEM, records, owner=None)


def _store_in_vault() -> None:
    from memory.models import Passage, Vault
    from memory.principal import SYSTEM
    from memory.services.vaults import assets
    from memory.services.vaults.assets import AssetDraft
    from memory.tests.vaults import opened

    opened(SYSTEM)
    for place in range(COUNT):
        assets.put(SYSTEM, "library", AssetDraft(f"note{place} of tea", f"note{place}"))
    Passage.objects.all().delete()
    Vault.objects.update(needs_index=True)


def _found() -> list[str]:
    from engine.types import Mode
    from memory.principal import SYSTEM
    from memory.tests.asking import ask

    return ask(SYSTEM, "note95 of tea", mode=Mode.VECTOR, limit=100)


def _found_in_vault() -> list[str]:
    from engine.types import Mode
    from memory.principal import SYSTEM
    from memory.services.vaults import searching
    from memory.services.vaults.searching import SearchRequest

    request = SearchRequest("library", "note95 of tea", Mode.VECTOR, limit=100, rerank=False)
    return [item.chunk.passage.body for item in searching.find(SYSTEM, request).found]


def _begin(source: Any, store: Callable[[], None]) -> None:
    from django.core.management import call_command

    from memory import jobs
    from memory.models import Job
    from memory.services import signin
    from memory.tasks import HANDLERS

    call_command("migrate", verbosity=0, interactive=False)
    signin.first_start()
    store()
    batches: list[int] = []

    def wait_for_the_end(_texts: Sequence[str]) -> None:
        batches.append(1)
        if len(batches) > BATCHES_BEFORE_THE_KILL:
            _say("ready to be killed")
            sys.stdin.read()

    source.before = wait_for_the_end
    jobs.run(Job.objects.get().pk, HANDLERS, role="studio")


def _finish(source: Any, look: Callable[[], list[str]]) -> None:
    from memory import jobs
    from memory.models import Job, Passage
    from memory.services import embedding
    from memory.tasks import HANDLERS

    before = embedding.coverage().indexed
    freed = jobs.void_own_leases(alone=True)
    sent = jobs.sweep()
    job = Job.objects.get()
    jobs.run(job.pk, HANDLERS, role="studio")
    job.refresh_from_db()
    embedded = len(source.documents)
    found = look()
    _say(
        json.dumps(
            {
                "before": before,
                "freed": freed,
                "sent": sent,
                "state": job.state,
                "attempts": job.attempts,
                "passages": Passage.objects.count(),
                "embedded_now": embedded,
                "percent": embedding.coverage().percent,
                "first": found[0],
                "found": len(found),
            }
        )
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
