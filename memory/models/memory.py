"""Memories, their earlier texts, their use counters, and compactions."""

from __future__ import annotations

import uuid

from django.db import models

from memory.models.access import ApiKey


class Memory(models.Model):
    """One stored statement of an owner.

    Life: live, then trashed (``trashed_at``, undoable, purged later) or archived
    (``archived_at``, by a compaction, restorable). The key is unique among live rows of an owner.
    ``retained_at`` is when retention starts to count: import or last edit.
    """

    class Type(models.TextChoices):
        FACTUAL = "factual"
        EPISODIC = "episodic"
        PROCEDURAL = "procedural"
        SEMANTIC = "semantic"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="memories")
    session_id = models.CharField(max_length=200, blank=True, default="")
    type = models.CharField(max_length=12, choices=Type.choices, default=Type.FACTUAL)
    key = models.CharField(max_length=500)
    content = models.TextField()
    metadata = models.JSONField(default=dict, blank=True)
    tokens = models.PositiveIntegerField(default=0)
    revision = models.PositiveIntegerField(default=1)
    is_pinned = models.BooleanField(default=False)
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    retained_at = models.DateTimeField()
    occurred_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    trashed_at = models.DateTimeField(null=True, blank=True)
    archived_by = models.ForeignKey(
        "Compaction", on_delete=models.SET_NULL, null=True, blank=True, related_name="originals"
    )

    class Meta:
        ordering = ("-created_at", "-id")
        verbose_name_plural = "memories"
        constraints = (
            models.UniqueConstraint(
                fields=("api_key", "key"),
                condition=models.Q(archived_at__isnull=True, trashed_at__isnull=True),
                name="memory_live_key",
            ),
        )
        indexes = (
            # With both ends of a life in it, so that live rows are counted in the index alone.
            models.Index(
                fields=("api_key", "-created_at", "trashed_at", "archived_at"),
                name="memory_owner_newest",
            ),
            models.Index(fields=("-created_at", "-id"), name="memory_newest"),
            models.Index(fields=("api_key", "session_id"), name="memory_session"),
            # Only of the few rows that have one: a planner must not prefer these to the order.
            models.Index(
                fields=("expires_at",),
                condition=models.Q(expires_at__isnull=False),
                name="memory_expiry",
            ),
            models.Index(
                fields=("trashed_at",),
                condition=models.Q(trashed_at__isnull=False),
                name="memory_trash",
            ),
        )

    def __str__(self) -> str:
        return self.key


class MemoryUse(models.Model):
    """How often a memory was retrieved; apart from the row, so that counting rewrites no index."""

    memory = models.OneToOneField(
        Memory, on_delete=models.CASCADE, primary_key=True, related_name="use"
    )
    access_count = models.PositiveIntegerField(default=0)
    last_accessed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.memory_id}: {self.access_count}"


class MemoryRevision(models.Model):
    """What a memory was before one change."""

    # No index of its own: the unique constraint begins with it.
    memory = models.ForeignKey(
        Memory, on_delete=models.CASCADE, related_name="revisions", db_index=False
    )
    revision = models.PositiveIntegerField()
    key = models.CharField(max_length=500)
    type = models.CharField(max_length=12)
    content = models.TextField()
    metadata = models.JSONField(default=dict)
    session_id = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    replaced_at = models.DateTimeField()
    replaced_by = models.CharField(max_length=160, blank=True)
    action = models.CharField(max_length=20)

    class Meta:
        ordering = ("-revision",)
        constraints = (
            models.UniqueConstraint(fields=("memory", "revision"), name="revision_once"),
        )

    def __str__(self) -> str:
        return f"{self.memory_id} r{self.revision}"


class Compaction(models.Model):
    """One compaction of one owner's memories; can be undone once."""

    class Kind(models.TextChoices):
        AGE = "age"
        TOKENS = "tokens"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="compactions")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    params = models.JSONField(default=dict)
    summary_ids = models.JSONField(default=list)
    rewritten = models.JSONField(default=list)
    original_count = models.PositiveIntegerField(default=0)
    tokens_saved = models.IntegerField(default=0)
    created_at = models.DateTimeField()
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def changed_count(self) -> int:
        """How many memories were archived or shortened; ``original_count`` has those looked at."""
        return len(self.rewritten) if self.kind == self.Kind.TOKENS else self.original_count
