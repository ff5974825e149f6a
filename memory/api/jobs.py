"""``/api/jobs``: list, read, cancel, start again."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from memory.api.auth import caller
from memory.api.present import job_out
from memory.api.schemas.access import JobList, JobOut
from memory.services import jobrows

router = Router(tags=["jobs"], by_alias=True)


@router.get("", response=JobList)
def list_jobs(
    request: HttpRequest, limit: Annotated[int, Field(ge=1, le=200)] = 20
) -> dict[str, Any]:
    """Newest jobs first."""
    return {"data": [job_out(job) for job in jobrows.list_jobs(caller(request), limit=limit)]}


@router.get("/{job_id}", response=JobOut)
def read_job(request: HttpRequest, job_id: str) -> dict[str, Any]:
    """One job with its progress and result."""
    return job_out(jobrows.get(caller(request), job_id))


@router.post("/{job_id}/cancel", response=JobOut)
def cancel_job(request: HttpRequest, job_id: str) -> dict[str, Any]:
    """Ask a job to stop."""
    return job_out(jobrows.cancel(caller(request), job_id))


@router.post("/{job_id}/retry", response=JobOut)
def retry_job(request: HttpRequest, job_id: str) -> dict[str, Any]:
    """Start a failed or cancelled job again."""
    return job_out(jobrows.retry(caller(request), job_id))
