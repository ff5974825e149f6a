"""Vaults, what lies in them, and who else may use them.

In a sealed vault every text is a ``sealed_…`` column and its plain columns are empty: see
``engine.vault.sealing``. What stays readable: the vault's name, how many assets there are, of which
kind, how large, and when they changed.
"""

from __future__ import annotations

import uuid

from django.db import models

from memory.models.access import ApiKey


class Vault(models.Model):
    """A library of one owner.

    ``revision`` grows with every change of what lies in it, ``policy_revision`` with every change
    of its rules or grants, ``lock_generation`` with every lock: work that began under other
    numbers is void. The envelopes hold the key of a sealed vault; only a passphrase or the
    recovery key opens them. A blank ``embedding_model`` is the default of vaults. ``needs_index``
    marks an open vault whose assets are still to be taken into the tables that are searched.
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="vaults")
    name = models.CharField(max_length=120)
    is_sealed = models.BooleanField(default=True)
    is_device_only = models.BooleanField(default=False)
    auto_lock_minutes = models.PositiveIntegerField(default=15)
    embedding_model = models.CharField(max_length=80, blank=True)
    embedding_dim = models.PositiveIntegerField(null=True, blank=True)
    passphrase_envelope = models.TextField(blank=True)
    recovery_envelope = models.TextField(blank=True)
    revision = models.PositiveBigIntegerField(default=1)
    policy_revision = models.PositiveBigIntegerField(default=1)
    lock_generation = models.PositiveBigIntegerField(default=1)
    needs_index = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ("name", "pk")
        constraints = (models.UniqueConstraint(fields=("owner", "name"), name="vault_name_once"),)

    def __str__(self) -> str:
        return self.name


class VaultAsset(models.Model):
    """A memory, a knowledge card, or one of the three kinds that are never searched or sent.

    ``source_key`` stands for where it was read from, so that reading it again makes a revision.
    """

    class Kind(models.TextChoices):
        MEMORY = "memory"
        CARD = "card"
        PRIVATE = "private"
        CREDENTIAL = "credential"
        FILE = "file"

    SEARCHABLE = (Kind.MEMORY, Kind.CARD)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # No index of its own: the index below begins with it.
    vault = models.ForeignKey(
        Vault, on_delete=models.CASCADE, related_name="assets", db_index=False
    )
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.CARD)
    revision = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=200, blank=True)
    body = models.TextField(blank=True)
    meta = models.JSONField(default=dict, blank=True)
    sealed_head = models.BinaryField(default=b"", blank=True)
    sealed_body = models.BinaryField(default=b"", blank=True)
    source_key = models.CharField(max_length=64, blank=True)
    size = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    trashed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-updated_at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("vault", "source_key"),
                condition=models.Q(trashed_at__isnull=True) & ~models.Q(source_key=""),
                name="vault_source_once",
            ),
        )
        indexes = (models.Index(fields=("vault", "-updated_at"), name="vault_asset_newest"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class VaultAssetRevision(models.Model):
    """What an asset was before one change, sealed like the asset itself."""

    # No index of its own: the unique constraint begins with it.
    asset = models.ForeignKey(
        VaultAsset, on_delete=models.CASCADE, related_name="revisions", db_index=False
    )
    revision = models.PositiveIntegerField()
    title = models.CharField(max_length=200, blank=True)
    body = models.TextField(blank=True)
    meta = models.JSONField(default=dict, blank=True)
    sealed_head = models.BinaryField(default=b"", blank=True)
    sealed_body = models.BinaryField(default=b"", blank=True)
    size = models.PositiveIntegerField(default=0)
    written_at = models.DateTimeField()
    replaced_at = models.DateTimeField()
    replaced_by = models.CharField(max_length=160, blank=True)

    class Meta:
        ordering = ("-revision",)
        constraints = (
            models.UniqueConstraint(fields=("asset", "revision"), name="vault_revision_once"),
        )

    def __str__(self) -> str:
        return f"{self.asset_id} r{self.revision}"


class VaultGrant(models.Model):
    """What another key than the owner's may do with a vault, and until when."""

    class Role(models.TextChoices):
        READER = "reader"
        WRITER = "writer"
        MANAGER = "manager"

    vault = models.ForeignKey(
        Vault, on_delete=models.CASCADE, related_name="grants", db_index=False
    )
    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="vault_grants")
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.READER)
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("created_at", "pk")
        constraints = (models.UniqueConstraint(fields=("vault", "key"), name="vault_grant_once"),)

    def __str__(self) -> str:
        return f"{self.key_id} on {self.vault_id}: {self.role}"
