"""Addresses that are told what happens, and what each was told or is still to be told."""

from __future__ import annotations

import uuid

from django.db import models

from memory.models.access import ApiKey


class Webhook(models.Model):
    """One address that events are sent to. Without an owner it hears of every owner.

    ``is_trusted`` is set where a manager gave the address: only then may it lie in the local
    network. ``secret`` is sealed. While requests fail, ``failures`` counts them from
    ``failing_since`` on, and nothing is sent before ``paused_until``.
    """

    class Off(models.TextChoices):
        NOT = "", "not"
        ASKED = "asked"
        GONE = "gone"
        FAILING = "failing"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    url = models.CharField(max_length=2000)
    events = models.JSONField(default=list)
    owner = models.ForeignKey(ApiKey, on_delete=models.CASCADE, null=True, blank=True)
    is_trusted = models.BooleanField(default=False)
    include_content = models.BooleanField(default=False)
    secret = models.TextField()
    secret_hint = models.CharField(max_length=8, blank=True)
    is_enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(
        max_length=10, choices=Off.choices, blank=True, default=Off.NOT
    )
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    paused_until = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=60, blank=True)
    last_sent_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ("name", "created_at")

    def __str__(self) -> str:
        return self.name


class WebhookDelivery(models.Model):
    """One event for one webhook: the outbox until it is sent, the log afterwards.

    ``uid`` makes the id that the receiver knows it by, the same at every attempt. ``items`` holds
    ids and revisions, never a text; a text that is asked for is read when it is sent. The webhook
    has no constraint in the database: one that is removed while a memory is written must not make
    that write fail.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"

    uid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, related_name="deliveries", db_constraint=False
    )
    event = models.CharField(max_length=40)
    owner = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, blank=True)
    items = models.JSONField(default=list)
    count = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    status_code = models.PositiveSmallIntegerField(null=True, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    latency_ms = models.FloatField(default=0)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    attempted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "webhook deliveries"
        indexes = (
            models.Index(
                fields=("due_at",),
                condition=models.Q(state="waiting"),
                name="webhook_delivery_due",
            ),
        )

    def __str__(self) -> str:
        return f"{self.event} {self.state}"

    @property
    def message_id(self) -> str:
        """The id that the receiver knows the event by."""
        return f"msg_{self.uid.hex}"
