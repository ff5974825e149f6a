"""Reindex on demand: what waits now, or everything again."""

from __future__ import annotations

from django.db import transaction

from memory import jobs, qdrant_store, wiring
from memory.models import Job, Passage, VectorIndex
from memory.moment import one_moment
from memory.principal import Principal
from memory.services import access, audit, embedding, mirroring, passages


def pending() -> int:
    """How many passages wait for a vector."""
    return embedding.coverage().pending


def renew_keywords() -> bool:
    """Rebuild the keyword index when its analyzer has changed or rows are lost; whether it was."""
    index = wiring.keyword_index()
    is_sound = index.health().available
    with one_moment():
        is_whole = is_sound and index.count() >= Passage.objects.count()
    if is_whole and index.is_current():
        return False
    with transaction.atomic():
        order = jobs.Order("reindex", dedupe_key=embedding.DEDUPE, requested_by="system")
        _rebuild_keywords(jobs.enqueue(order))
    return True


def start(principal: Principal, *, force: bool = False) -> Job:
    """Start the job, or answer the one that runs: there are never two.

    ``force`` marks every passage again and rebuilds the keyword index as well, while both keep
    serving.
    """
    access.require(principal, "manage")
    with transaction.atomic():
        if force:
            for index in VectorIndex.objects.exclude(state=VectorIndex.State.RETIRED):
                passages.mark_all(index)
        job = jobs.enqueue(
            jobs.Order("reindex", dedupe_key=embedding.DEDUPE, requested_by=principal.label)
        )
        if force:
            _rebuild_keywords(job)
            _rebuild_elsewhere(principal)
        audit.record(principal, "engine.reindex", ids=[job.pk], detail={"force": force})
    return job


def _rebuild_elsewhere(principal: Principal) -> None:
    """Build the collection in Qdrant anew as well, from the vectors that are there."""
    if qdrant_store.is_on(wiring.settings()) and embedding.active_index() is not None:
        mirroring.start_build(requested_by=principal.label)


def _rebuild_keywords(job: Job) -> None:
    index = wiring.keyword_index()
    if not index.health().available:
        # There is nothing in it that could go on serving.
        index.clear()
    job.params = {**job.params, embedding.KEYWORD_CURSOR: 0}
    Job.objects.filter(pk=job.pk).update(params=job.params, total=Passage.objects.count())
