"""Who may come in: API keys (owners of memories) and one-time sign-in links."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class ApiKey(models.Model):
    """An owner of memories. The secret is shown once and kept as a hash.

    ``injection`` says whether its chats are given memories: as the settings say, or on or off.
    ``daily_tokens`` is the most that memories may cost in its chats on one day; None is no cap.
    """

    class Injection(models.TextChoices):
        INHERIT = "inherit"
        ON = "on"
        OFF = "off"

    uid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120, unique=True)
    secret_hash = models.CharField(max_length=64, unique=True, null=True, blank=True)
    secret_hint = models.CharField(max_length=8, blank=True)
    scopes = models.JSONField(default=list)
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    injection = models.CharField(max_length=8, choices=Injection.choices, default=Injection.INHERIT)
    daily_tokens = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("is_default",),
                condition=models.Q(is_default=True),
                name="apikey_one_default",
            ),
        )

    def __str__(self) -> str:
        return self.name


class SignInLink(models.Model):
    """A link that signs the studio user in, once."""

    token_hash = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"sign-in link {self.pk}"
