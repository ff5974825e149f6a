"""The relational part of the derived data: passages, their change log, vector indexes and marks.

The column names of ``Passage`` and ``PassageChange`` are a contract with
``engine.scope_sql``; a test compares them.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.deconstruct import deconstructible

from memory.models.access import ApiKey
from memory.models.memory import Memory
from memory.models.vault import VaultAsset


class Passage(models.Model):
    """One indexed piece of a memory, or of what lies in an open vault, with the columns a scope
    filters on.

    A piece of a vault has ``vault_id`` and ``asset``, its text in ``VaultChunk``, and as ``type``
    its ``kind``. ``start`` and ``end`` are code points of the content; ``text_hash`` stands for the
    embedded text, ``keyword_hash`` for all that the keyword index holds. ``occurred_ms`` is when
    it was said or happened, else when it was stored; within a session it orders the turns. Times
    are milliseconds since the epoch, so that SQL and numpy compare the same numbers.
    """

    class Kind(models.TextChoices):
        MEMORY = "memory"
        CARD = "card"

    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.MEMORY)
    # No index of its own: the unique constraint begins with it.
    memory = models.ForeignKey(
        Memory,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="passages",
        db_index=False,
    )
    # No index of its own: the partial one below has only rows of vaults.
    asset = models.ForeignKey(
        VaultAsset,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="passages",
        db_index=False,
    )
    ordinal = models.PositiveIntegerField(default=0)
    start = models.PositiveIntegerField(default=0)
    end = models.PositiveIntegerField(default=0)
    text_hash = models.CharField(max_length=64)
    keyword_hash = models.CharField(max_length=64)
    owner = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="+")
    vault_id = models.BigIntegerField(null=True, blank=True)
    session = models.CharField(max_length=200, blank=True, default="")
    type = models.CharField(max_length=12)
    is_shared = models.BooleanField(default=False)
    is_pinned = models.BooleanField(default=False)
    is_archived = models.BooleanField(default=False)
    speaker = models.CharField(max_length=100, blank=True, default="")
    language = models.CharField(max_length=10, blank=True, default="")
    created_ms = models.BigIntegerField()
    occurred_ms = models.BigIntegerField(default=0)
    retained_ms = models.BigIntegerField()
    expires_ms = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("memory", "ordinal"), name="passage_place"),)
        indexes = (
            models.Index(fields=("owner", "-created_ms"), name="passage_owner_newest"),
            models.Index(fields=("-created_ms",), name="passage_newest"),
            models.Index(fields=("owner", "occurred_ms"), name="passage_owner_occurred"),
            # The turns beside a turn; most memories belong to no session.
            models.Index(
                fields=("owner", "session", "occurred_ms", "id"),
                condition=~models.Q(session=""),
                name="passage_turn",
            ),
            # Of vaults alone, so that memories pay nothing for them.
            models.Index(
                fields=("asset", "ordinal"),
                condition=models.Q(asset__isnull=False),
                name="passage_asset",
            ),
            models.Index(
                fields=("vault_id",),
                condition=models.Q(vault_id__isnull=False),
                name="passage_vault",
            ),
        )

    def __str__(self) -> str:
        return f"{self.memory_id or self.asset_id}[{self.ordinal}]"


class VaultChunk(models.Model):
    """The text of a passage of an open vault, and where it stands in the body of its asset.

    A body may have 16 MiB: a search that finds a piece of it must not read all of it. Offsets are
    bytes of the body's UTF-8, ``sha256`` is that of the text.
    """

    passage = models.OneToOneField(
        Passage, on_delete=models.CASCADE, primary_key=True, related_name="chunk"
    )
    text = models.TextField()
    byte_start = models.PositiveIntegerField()
    byte_end = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.passage_id}: {self.byte_start}-{self.byte_end}"


@deconstructible(path="memory.models.index.TransactionNumber")
class TransactionNumber(models.Func):
    """The number of the running transaction; 0 on SQLite, where the log needs none."""

    allowed_default = True

    def __init__(self) -> None:
        super().__init__(output_field=models.BigIntegerField())

    def as_sql(self, *_args: Any, **_kwargs: Any) -> tuple[str, tuple[str | int, ...]]:
        """A constant, for every database that writes one transaction after another."""
        return "0", ()

    def as_postgresql(self, *_args: Any, **_kwargs: Any) -> tuple[str, tuple[str | int, ...]]:
        """What ``pg_current_snapshot`` compares with."""
        return "(pg_current_xact_id()::text::bigint)", ()


class PassageChange(models.Model):
    """Change log that in-process indexes of any process follow: ``engine.columns.change_log``."""

    id = models.BigAutoField(primary_key=True)
    passage_id = models.BigIntegerField()
    txid = models.BigIntegerField(db_default=TransactionNumber(), editable=False)

    class Meta:
        indexes = (
            models.Index(
                fields=("txid",), condition=models.Q(txid__gt=0), name="change_transaction"
            ),
        )

    def __str__(self) -> str:
        return f"{self.pk}: {self.passage_id}"


class VectorIndex(models.Model):
    """One vector space in the store. At most one is active; another may be building beside it.

    A retired one was active before and can be gone back to. ``retired_at`` stays while it is built
    up again, and ``needs_check`` is set until the passages that changed meanwhile are marked.
    ``made_by`` holds the stored settings that chose its source, secrets sealed.
    """

    class State(models.TextChoices):
        BUILDING = "building"
        ACTIVE = "active"
        RETIRED = "retired"

    signature = models.CharField(max_length=300, unique=True)
    source = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    revision = models.CharField(max_length=200)
    dim = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=State.choices)
    created_at = models.DateTimeField()
    activated_at = models.DateTimeField(null=True, blank=True)
    retired_at = models.DateTimeField(null=True, blank=True)
    needs_check = models.BooleanField(default=False)
    made_by = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("state",), condition=models.Q(state="active"), name="vector_one_active"
            ),
            models.UniqueConstraint(
                fields=("state",), condition=models.Q(state="building"), name="vector_one_building"
            ),
        )

    def __str__(self) -> str:
        return self.signature


class VectorMark(models.Model):
    """A passage that still needs a vector in an index (the outbox)."""

    # No index of its own: the unique constraint begins with it.
    index = models.ForeignKey(
        VectorIndex, on_delete=models.CASCADE, related_name="marks", db_index=False
    )
    passage = models.ForeignKey(Passage, on_delete=models.CASCADE, related_name="+")
    attempts = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=40, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("index", "passage"), name="mark_once"),)

    def __str__(self) -> str:
        return f"{self.index_id}: {self.passage_id}"
