"""The engine page says why jobs wait."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from memory import jobs, processes
from memory.clock import now
from memory.models import Job
from memory.principal import SYSTEM
from memory.services import jobrows, signin

pytestmark = pytest.mark.django_db


def _waiting(minutes: float) -> Job:
    job = jobs.enqueue(jobs.Order("count"), dispatch=False)
    Job.objects.filter(pk=job.pk).update(created_at=now() - timedelta(minutes=minutes))
    return job


def test_a_job_that_no_worker_takes_is_told(client: Client, first_start: None) -> None:
    link = signin.sign_in_link("http://testserver")
    assert link is not None
    client.get(link)
    _waiting(minutes=1)
    assert "No worker has taken a job" not in client.get("/engine/").content.decode()
    _waiting(minutes=3)
    assert "No worker has taken a job" in client.get("/engine/").content.decode()


def test_while_a_worker_is_busy_others_may_wait() -> None:
    _waiting(minutes=3)
    assert jobs.claim(_waiting(minutes=3).pk, processes.name("worker")) is not None
    assert jobrows.delay(SYSTEM) == ""
