"""Services that the studio may call: for embeddings, reranking, generation and chats."""

from __future__ import annotations

import uuid

from django.db import models


class Provider(models.Model):
    """One service as the studio keeps it; ``memory.provider_table`` adds those of the environment.

    A blank ``base_url`` or ``protocol`` is that of the kind in the catalogue. The credential is
    sealed, or is the value of the environment variable that is named. ``model_names`` are ids and
    patterns of chat models.
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=60, unique=True)
    kind = models.CharField(max_length=40)
    base_url = models.CharField(max_length=2048, blank=True)
    protocol = models.CharField(max_length=20, blank=True)
    sealed_key = models.TextField(blank=True)
    key_variable = models.CharField(max_length=200, blank=True)
    model_names = models.JSONField(default=list, blank=True)
    is_enabled = models.BooleanField(default=True)
    position = models.PositiveIntegerField(default=0)
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ("position", "pk")

    def __str__(self) -> str:
        return self.name
