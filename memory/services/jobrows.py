"""Jobs as users see them."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memory import dispatch, jobs
from memory.clock import now
from memory.errors import Conflict, NotFound
from memory.models import Job
from memory.principal import Principal
from memory.services import access, audit
from memory.services.mirror_soon import FOLLOW
from memory.services.webhooks.events import KIND as WEBHOOK

LATE: Final = timedelta(minutes=2)
"""So long even a lost message takes to come again."""


def list_jobs(principal: Principal, *, limit: int = 20, is_brief: bool = False) -> list[Job]:
    """Newest jobs the caller may see: all for a manager, its own for a key.

    ``is_brief`` leaves out what follows every write by itself and went well.
    """
    access.require(principal, "read")
    rows = _visible(principal)
    if is_brief:
        rows = rows.exclude(kind__in=(FOLLOW, WEBHOOK), state=Job.State.SUCCEEDED)
    return list(rows[:limit])


def get(principal: Principal, job_id: str | uuid.UUID) -> Job:
    """One job. Raises ``NotFound``."""
    access.require(principal, "read")
    try:
        wanted = job_id if isinstance(job_id, uuid.UUID) else uuid.UUID(job_id)
    except ValueError:
        raise NotFound(_("No such job.")) from None
    job = _visible(principal).filter(pk=wanted).first()
    if job is None:
        raise NotFound(_("No such job."))
    return job


def active(principal: Principal) -> list[Job]:
    """Jobs that are queued or running."""
    access.require(principal, "read")
    return list(_visible(principal).filter(state__in=Job.ACTIVE))


def delay(principal: Principal) -> str:
    """Why jobs wait for longer than they should, in a sentence; nothing when they do not."""
    access.require(principal, "read")
    if dispatch.is_failing():
        return _("The broker cannot be reached. Jobs wait, and are sent when it answers.")
    late = Job.objects.filter(state=Job.State.QUEUED, created_at__lt=now() - LATE, attempts=0)
    if late.exists() and not Job.objects.filter(lease_until__gt=now(), state="running").exists():
        return _("No worker has taken a job for minutes. Is one running?")
    return ""


def cancel(principal: Principal, job_id: str | uuid.UUID) -> Job:
    """Ask a job to stop. Raises ``Conflict`` when it has already ended."""
    job = _changeable(principal, job_id)
    if not job.is_active:
        raise Conflict(_("This job has already ended."), code="job_ended")
    jobs.cancel(job)
    audit.record(principal, "job.cancel", owner=job.owner, ids=[job.pk])
    return job


def retry(principal: Principal, job_id: str | uuid.UUID) -> Job:
    """Start a failed or cancelled job again as a new one."""
    job = _changeable(principal, job_id)
    if job.is_active or job.state == Job.State.SUCCEEDED:
        raise Conflict(_("Only a failed or cancelled job can be started again."), code="not_failed")
    order = jobs.Order(
        job.kind,
        params=job.params,
        dedupe_key=job.dedupe_key,
        owner_id=job.owner_id,
        requested_by=principal.label,
    )
    with transaction.atomic():
        again = jobs.enqueue(order)
        if (again.owner_id, again.params) != (job.owner_id, job.params):
            # Another one has its place, perhaps of another owner: nothing of it is shown.
            raise Conflict(_("Another job of this kind is running."), code="busy")
        audit.record(principal, "job.retry", owner=job.owner, ids=[job.pk])
    return again


def _changeable(principal: Principal, job_id: str | uuid.UUID) -> Job:
    job = get(principal, job_id)
    access.require(principal, "write" if job.owner_id == principal.owner else "manage")
    return job


def _visible(principal: Principal) -> QuerySet[Job]:
    rows = Job.objects.select_related("owner")
    if access.may_name_owners(principal):
        return rows
    return rows.filter(owner=principal.owner)
