"""A process with a webhook that a test kills; its arguments are a step and a port.

``begin`` stores two memories, rolls a third back, and is killed while it sends the first event.
``finish`` does what the next start of the studio does, and prints what it found.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main(step: str, port: str) -> None:
    """Carry out one step in a process of its own."""
    import django

    django.setup()
    from django.conf import settings

    from memory.tests.watched import watch

    watch(settings)
    if step == "begin":
        _begin(port)
    else:
        _finish()


def _begin(port: str) -> None:
    from django.core.management import call_command
    from django.db import transaction

    from memory import jobs
    from memory.models import Job
    from memory.principal import SYSTEM
    from memory.services import memories, signin
    from memory.services.drafts import MemoryDraft
    from memory.services.webhooks import hooks
    from memory.tasks import HANDLERS

    call_command("migrate", verbosity=0, interactive=False)
    signin.first_start()
    address = f"http://127.0.0.1:{port}/"
    hooks.create(SYSTEM, hooks.WebhookDraft("app", address, include_content=True))
    for key in ("first", "second"):
        memories.create(SYSTEM, MemoryDraft(content=f"the {key}", key=key))
    try:
        with transaction.atomic():
            memories.create(SYSTEM, MemoryDraft(content="never", key="third"))
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    _say("sending")
    jobs.run(Job.objects.get(kind="webhook").pk, HANDLERS, role="studio")


def _finish() -> None:
    from memory import jobs
    from memory.models import Job, WebhookDelivery
    from memory.tasks import HANDLERS

    rows = WebhookDelivery.objects.order_by("pk")
    waiting = rows.filter(state="waiting").count()
    jobs.void_own_leases(alone=True)
    jobs.sweep()
    jobs.run(Job.objects.get(kind="webhook").pk, HANDLERS, role="studio")
    found: dict[str, Any] = {"waiting": waiting, "states": [row.state for row in rows.all()]}
    _say(json.dumps(found))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
