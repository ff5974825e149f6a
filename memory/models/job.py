"""Long work. The row is the truth; a Celery message carries only its id."""

from __future__ import annotations

import uuid

from django.db import models

from memory.models.access import ApiKey


class Job(models.Model):
    """One run of long work, with progress, lease and result.

    A worker claims a queued row, renews ``lease_until`` while it works, and whoever finds a lapsed
    lease may queue the row again. ``dedupe_key`` is unique among active rows.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLED = "cancelled"

    ACTIVE = (State.QUEUED, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=40)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    params = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    message = models.CharField(max_length=300, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    dedupe_key = models.CharField(max_length=120, blank=True)
    owner = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, blank=True)
    requested_by = models.CharField(max_length=160, blank=True)
    worker = models.CharField(max_length=120, blank=True)
    traceparent = models.CharField(max_length=64, blank=True, default="")
    is_cancel_requested = models.BooleanField(default=False)
    lease_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("dedupe_key",),
                condition=models.Q(state__in=("queued", "running")) & ~models.Q(dedupe_key=""),
                name="job_one_active",
            ),
        )
        indexes = (models.Index(fields=("state", "lease_until"), name="job_sweep"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"

    @property
    def is_active(self) -> bool:
        """Whether it is queued or running."""
        return self.state in self.ACTIVE

    @property
    def percent(self) -> int:
        """Progress in whole percent; 0 while the total is unknown."""
        return min(100, 100 * self.done // self.total) if self.total else 0
