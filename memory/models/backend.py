"""What memories are called in other stores."""

from __future__ import annotations

from django.db import models


class BackendCopy(models.Model):
    """The id that one backend gave a memory, and what that backend is still to be told.

    After a failure the next attempt is due at ``due_at``. There is no foreign key: a memory that
    was erased here may still have to be erased there.
    """

    class Pending(models.TextChoices):
        NOTHING = "", "nothing"
        UPDATE = "update"
        DELETE = "delete"

    backend = models.CharField(max_length=80)
    memory_id = models.UUIDField(db_index=True)
    own_id = models.CharField(max_length=600)
    pending = models.CharField(
        max_length=6, choices=Pending.choices, blank=True, default=Pending.NOTHING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=60, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "backend copies"
        constraints = (
            models.UniqueConstraint(fields=("backend", "memory_id"), name="backend_copy_memory"),
            models.UniqueConstraint(fields=("backend", "own_id"), name="backend_copy_own"),
        )
        indexes = (
            models.Index(
                fields=("backend", "id"),
                condition=~models.Q(pending=""),
                name="backend_copy_pending",
            ),
        )

    def __str__(self) -> str:
        return f"{self.backend}: {self.own_id}"
