"""Facts that wait for somebody's decision, and what learning by a model cost."""

from __future__ import annotations

import uuid

from django.db import models

from memory.models.access import ApiKey
from memory.models.memory import Memory


class InboxItem(models.Model):
    """One fact that was heard but not stored by itself.

    ``key`` is that of the memory it would become. One that is said again while it waits is counted
    in ``seen``, and one that was rejected is not asked about again until it is forgotten.
    ``trace_id`` is the receipt of the chat it was heard in; ``memory`` what it became.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        ACCEPTED = "accepted"
        REJECTED = "rejected"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(ApiKey, on_delete=models.CASCADE)
    session_id = models.CharField(max_length=200, blank=True)
    category = models.CharField(max_length=12)
    type = models.CharField(max_length=12, choices=Memory.Type.choices)
    key = models.CharField(max_length=500)
    content = models.TextField()
    polarity = models.CharField(max_length=8)
    speaker = models.CharField(max_length=10)
    confidence = models.FloatField()
    reason = models.CharField(max_length=40)
    source = models.CharField(max_length=12)
    metadata = models.JSONField(default=dict, blank=True)
    trace_id = models.UUIDField(null=True, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.PENDING)
    memory = models.ForeignKey(
        Memory, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    seen = models.PositiveIntegerField(default=1)
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=160, blank=True)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("owner", "key"),
                condition=models.Q(state="pending"),
                name="inbox_one_pending",
            ),
        )
        indexes = (
            models.Index(fields=("state", "-created_at", "-id"), name="inbox_newest"),
            models.Index(fields=("owner", "state", "-created_at"), name="inbox_owner_newest"),
            models.Index(fields=("owner", "key", "state"), name="inbox_owner_key"),
        )

    def __str__(self) -> str:
        return f"{self.key} {self.state}"


class ExtractionDay(models.Model):
    """Tokens that a model was sent and wrote for one owner on one day, to learn from its chats."""

    owner = models.ForeignKey(ApiKey, on_delete=models.CASCADE)
    day = models.DateField()
    calls = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("owner", "day"), name="extraction_day"),)

    def __str__(self) -> str:
        return f"{self.owner_id} {self.day}: {self.tokens}"
