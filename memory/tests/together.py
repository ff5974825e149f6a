"""Processes that share one home: ``python -m memory.tests.together web|worker``.

``web`` answers JSON lines, each a step with its arguments, as views would. ``worker`` runs every
queued job until its input ends. ``prepare`` makes the tables.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

PAUSE_S = 0.02


def main(role: str) -> None:
    """Take a role; the home is in the environment."""
    import django

    django.setup()
    from django.conf import settings

    settings.MEMORY_LOCAL_SOURCES = {"multilingual-e5-small": "memory.tests.sources.fake"}
    if role == "prepare":
        _prepare()
    elif role == "web":
        _web()
    else:
        _worker()


def _prepare() -> None:
    from django.core.management import call_command

    from memory.services import indexes, signin

    call_command("migrate", verbosity=0, interactive=False)
    signin.first_start()
    indexes.target_index()


def _web() -> None:
    steps: dict[str, Callable[..., Any]] = {
        "store": _store,
        "edit": _edit,
        "delete": _delete,
        "pending": _pending,
        "jobs": _jobs,
        "keyword": _keyword,
        "vector": _vector,
        "hybrid": _hybrid,
    }
    _say("ready")
    for line in sys.stdin:
        step, *arguments = json.loads(line)
        _say(steps[step](*arguments))


def _worker() -> None:
    from memory import jobs
    from memory.models import Job
    from memory.tasks import HANDLERS

    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    _say("ready")
    while not ended.wait(PAUSE_S):
        for job in Job.objects.filter(state=Job.State.QUEUED):
            jobs.run(job.pk, HANDLERS)


def _store(contents: list[str]) -> list[str]:
    from memory.principal import SYSTEM
    from memory.services import memories
    from memory.services.drafts import MemoryDraft

    stored = (memories.create(SYSTEM, MemoryDraft(content=text, key=text)) for text in contents)
    return [str(memory.pk) for memory, _created in stored]


def _edit(memory_id: str, content: str) -> None:
    from memory.principal import SYSTEM
    from memory.services import memories

    memories.update(SYSTEM, memory_id, {"content": content, "key": content})


def _delete(memory_id: str) -> None:
    from memory.principal import SYSTEM
    from memory.services import memories

    memories.delete(SYSTEM, memory_id)


def _pending() -> int:
    from memory.services import embedding

    return embedding.coverage().pending


def _jobs(kind: str) -> list[list[Any]]:
    from memory.models import Job

    rows = Job.objects.filter(kind=kind).order_by("created_at")
    return [[row.state, row.attempts] for row in rows]


def _keyword(query: str) -> list[str]:
    from engine.types import Mode
    from memory.principal import SYSTEM
    from memory.tests.asking import ask

    return ask(SYSTEM, query, mode=Mode.KEYWORD, limit=100, max_tokens=16_000)


def _vector(query: str) -> list[str]:
    """Through the index alone: a retrieval would embed what still waits for a vector itself."""
    from engine.types import Purpose
    from memory import wiring
    from memory.passage_reader import PassageReader
    from memory.services import access, embedding, lifetimes

    index = embedding.active_index()
    source = wiring.source_for(index) if index else None
    assert index is not None and source is not None
    scope = lifetimes.scope([access.default_key()], view=lifetimes.View())
    vector = source.embed([query], purpose=Purpose.QUERY)[0]
    found = wiring.store_for(index).search(vector, scope=scope, limit=100)
    passages = PassageReader().load([candidate.passage_id for candidate in found])
    return [passages[candidate.passage_id].body for candidate in found]


def _hybrid(query: str) -> list[str]:
    from engine.types import Mode
    from memory.principal import SYSTEM
    from memory.tests.asking import ask

    return ask(SYSTEM, query, mode=Mode.HYBRID, limit=100, max_tokens=16_000)


def _say(answer: object) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
