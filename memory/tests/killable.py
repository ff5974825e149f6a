"""A worker process that a test kills: ``python -m memory.tests.killable begin|finish``.

``begin`` stores memories, then embeds them, and after a few batches tells that it waits to be
killed. ``finish`` does what the next start of the studio does, and prints what it found.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

COUNT = 96
BATCHES_BEFORE_THE_KILL = 3


def main(step: str) -> None:
    """Carry out one step in a process of its own."""
    import django

    django.setup()
    from django.conf import settings

    from memory.tests.watched import watch

    if step == "begin":
        _begin(watch(settings))
    else:
        _finish(watch(settings))


def _begin(source: Any) -> None:
    from django.core.management import call_command

    from memory import jobs
    from memory.models import Job
    from memory.principal import SYSTEM
    from memory.services import exchange, signin
    from memory.tasks import HANDLERS

    call_command("migrate", verbosity=0, interactive=False)
    signin.first_start()
    records = [{"content": f"note{place} of tea", "key": f"k{place}"} for place in range(COUNT)]
    exchange.import_records(SYSTEM, records, owner=None)
    batches: list[int] = []

    def wait_for_the_end(_texts: Sequence[str]) -> None:
        batches.append(1)
        if len(batches) > BATCHES_BEFORE_THE_KILL:
            _say("ready to be killed")
            sys.stdin.read()

    source.before = wait_for_the_end
    jobs.run(Job.objects.get().pk, HANDLERS, role="studio")


def _finish(source: Any) -> None:
    from engine.types import Mode
    from memory import jobs
    from memory.models import Job, Memory
    from memory.principal import SYSTEM
    from memory.services import embedding
    from memory.tasks import HANDLERS
    from memory.tests.asking import ask

    before = embedding.coverage().indexed
    freed = jobs.void_own_leases(alone=True)
    sent = jobs.sweep()
    job = Job.objects.get()
    jobs.run(job.pk, HANDLERS, role="studio")
    job.refresh_from_db()
    found = ask(SYSTEM, "note95 of tea", mode=Mode.VECTOR, limit=100)
    _say(
        json.dumps(
            {
                "before": before,
                "freed": freed,
                "sent": sent,
                "state": job.state,
                "attempts": job.attempts,
                "memories": Memory.objects.count(),
                "embedded_now": len(source.documents),
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
    main(sys.argv[1])
