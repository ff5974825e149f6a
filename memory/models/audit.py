"""Who did what, without any text; and how often retrieval found something."""

from __future__ import annotations

from django.db import models

from memory.models.access import ApiKey


class AuditEntry(models.Model):
    """One write, or one read that returned memories: ids, counts and durations, never text."""

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=160)
    action = models.CharField(max_length=60)
    owner = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, blank=True)
    target_ids = models.JSONField(default=list)
    count = models.PositiveIntegerField(default=0)
    duration_ms = models.FloatField(default=0)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ("-at", "-id")
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"


class RetrievalCount(models.Model):
    """Retrievals with a query of one owner on one day, and how many returned something."""

    owner = models.ForeignKey(ApiKey, on_delete=models.CASCADE)
    day = models.DateField()
    queries = models.PositiveIntegerField(default=0)
    answered = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("owner", "day"), name="retrieval_day"),)

    def __str__(self) -> str:
        return f"{self.owner_id} {self.day}: {self.answered}/{self.queries}"
