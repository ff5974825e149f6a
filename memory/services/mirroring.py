"""The jobs that bring vectors to Qdrant: following the change log, and building a collection."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EngineError
from engine.types import Degraded
from memory import jobs, qdrant_store, wiring
from memory.models import Job
from memory.principal import Principal
from memory.services import access, audit, embedding, qdrant
from memory.services.degraded import explain
from memory.services.mirror_soon import BACKFILL, FOLLOW, is_pausing, order
from memory.stored_settings import Settings

if TYPE_CHECKING:
    from engine.qdrant.mirror import Mirror

PASSES: Final = 3
"""How often a job looks whether more has changed meanwhile; the next one sees the rest."""
ASKED: Final = "asked"
"""Parameter of a job: who asked for what it may start."""


def follow(context: jobs.JobContext) -> dict[str, Any]:
    """Handler of the job ``mirror``: apply what changed. Starts a build where one is needed."""
    found = _mirror()
    if found is None:
        return {"mirrored": 0}
    mirror, guarded = found
    if guarded(mirror.needs_build):
        start_build(requested_by=context.params.get(ASKED, jobs.UNASKED))
    count = 0
    for _pass in range(PASSES):
        count += guarded(lambda: mirror.follow(_report(context)))
        if not mirror.behind(0):
            break
    context.progress(count, count, force=True)
    return {"mirrored": count}


def backfill(context: jobs.JobContext) -> dict[str, Any]:
    """Handler of the job ``backfill``: build a collection of everything, and switch to it."""
    found = _mirror()
    if found is None:
        return {"points": 0}
    mirror, guarded = found
    guarded(lambda: mirror.build(_report(context)))
    live = mirror.live()
    count = mirror.rows.count()
    context.progress(count, count, force=True)
    return {"points": count, "collection": live.name if live else None}


def start_build(*, requested_by: str = jobs.UNASKED) -> Job | None:
    """Start the build, or answer the one that runs.

    One that somebody cancelled starts again only when somebody asks for it.
    """
    if requested_by == jobs.UNASKED:
        last = Job.objects.filter(kind=BACKFILL).order_by("-created_at").first()
        if last is not None and last.state == Job.State.CANCELLED:
            return None
    return order(BACKFILL, requested_by=requested_by)


def check_soon(*, requested_by: str) -> Job | None:
    """Have a place that was chosen now filled, or what is there already brought up to date.

    Somebody asked for it, whatever became of earlier builds.
    """
    found = _mirror()
    if found is None:
        return None
    mirror, _guarded = found
    live = mirror.live()
    if live is None or live.quantization != mirror.what.quantization:
        return start_build(requested_by=requested_by)
    # Whether the server still has it, the job finds out.
    params = {ASKED: requested_by}
    return jobs.enqueue(
        jobs.Order(FOLLOW, params=params, dedupe_key=FOLLOW, requested_by=requested_by)
    )


def build_again(principal: Principal) -> qdrant.Tried:
    """Start a build that somebody asked for; whether there is anything to build it from."""
    access.require(principal, "manage")
    code = ""
    chosen = wiring.settings()
    if not qdrant_store.is_on(chosen):
        code = qdrant.NOT_ENABLED if chosen.qdrant_host else qdrant.NOT_CONFIGURED
    elif embedding.active_index() is None:
        code = "empty"
    if code:
        return qdrant.Tried(False, 0, code, explain(Degraded("vectorStore", code, "")))
    job = start_build(requested_by=principal.label)
    audit.record(principal, "qdrant.build", ids=[job.pk] if job else [])
    return qdrant.Tried(True, 0)


def warm_up() -> None:
    """Load Qdrant's client where it is on, so that no search waits for it or goes on without."""
    if qdrant_store.is_on(wiring.settings()):
        from engine.qdrant.server import load

        with contextlib.suppress(EngineError):
            load()


def tend() -> bool:
    """Start what is due: the sweep calls it, and so an outage ends by itself. Whether it did."""
    if Job.objects.filter(kind__in=(FOLLOW, BACKFILL), state__in=Job.ACTIVE).exists():
        return False
    try:
        found = _mirror()
        if found is None or is_pausing():
            return False
        mirror, guarded = found
        guarded(_ping(wiring.settings()))
        if guarded(mirror.needs_build):
            return start_build() is not None
        is_behind = mirror.behind(0) > 0
    except EngineError:
        # It is down: the engine page and the answers say so, and the next sweep looks again.
        return False
    if is_behind:
        order(FOLLOW)
    return is_behind


Guarded = Callable[[Callable[[], Any]], Any]


def _mirror() -> tuple[Mirror, Guarded] | None:
    """The mirror of the live index, and how its calls tell what they learn; None when off."""
    chosen = wiring.settings()
    index = embedding.active_index()
    if index is None or not qdrant_store.is_on(chosen):
        return None
    mirror = qdrant_store.mirror(index, chosen)
    mirror.states.ensure()
    return mirror, qdrant_store.connection(chosen).guard.note


def _ping(chosen: Settings) -> Callable[[], None]:
    return qdrant_store.connection(chosen).server.ping


def _report(context: jobs.JobContext) -> Callable[[int, int], None]:
    return lambda done, total: context.progress(done, total)
