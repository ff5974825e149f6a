"""Receipts of chats that passed through the gateway, and what memory cost in them."""

from __future__ import annotations

import uuid

from django.db import models

from memory.models.access import ApiKey


class Trace(models.Model):
    """One chat: what was retrieved, injected and learnt, how long each step took, what it cost.

    Ids, counts and durations; ``text`` is None unless the settings ask for texts to be kept.
    ``status`` is what the client was answered, 0 where it left before.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField()
    owner = models.ForeignKey(ApiKey, on_delete=models.CASCADE)
    session_id = models.CharField(max_length=200, blank=True)
    protocol = models.CharField(max_length=12)
    model = models.CharField(max_length=200, blank=True)
    provider = models.CharField(max_length=60, blank=True)
    is_stream = models.BooleanField(default=False)
    status = models.PositiveSmallIntegerField(default=0)
    outcome = models.CharField(max_length=16)
    memory = models.CharField(max_length=16)
    retrieved = models.JSONField(default=list)
    injected = models.JSONField(default=list)
    learnt = models.JSONField(default=list)
    degraded = models.JSONField(default=list)
    place = models.CharField(max_length=16, blank=True)
    tokens = models.PositiveIntegerField(default=0)
    durations = models.JSONField(default=dict)
    text = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(fields=("-at", "-id"), name="trace_newest"),
            models.Index(fields=("owner", "-at"), name="trace_owner_newest"),
        )

    def __str__(self) -> str:
        return f"{self.protocol} {self.at:%Y-%m-%d %H:%M} {self.memory}"


class InjectionDay(models.Model):
    """Chats of one owner on one day, those that were given memories, and the tokens of these.

    ``failures`` counts the chats that went on without memory because it failed or was late.
    """

    owner = models.ForeignKey(ApiKey, on_delete=models.CASCADE)
    day = models.DateField()
    chats = models.PositiveIntegerField(default=0)
    injected = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("owner", "day"), name="injection_day"),)

    def __str__(self) -> str:
        return f"{self.owner_id} {self.day}: {self.tokens}"
