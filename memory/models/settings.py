"""The stored settings: one row, the first seed's database keys in one JSON object."""

from __future__ import annotations

from django.db import models


class EngineSettings(models.Model):
    """Raw stored values; ``memory.services.settings`` normalises them on every read."""

    stored = models.JSONField(default=dict)
    revision = models.PositiveIntegerField(default=1)
    updated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "engine settings"

    def __str__(self) -> str:
        return f"settings r{self.revision}"
