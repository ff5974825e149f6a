"""What all processes of an installation share beside the settings."""

from __future__ import annotations

import uuid

from django.db import models


class InstallationFact(models.Model):
    """One fact about the installation, such as the fingerprint of a key."""

    name = models.CharField(max_length=40, primary_key=True)
    value = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name


class UploadPart(models.Model):
    """A piece of an uploaded file that a worker, perhaps on another machine, has still to read."""

    upload = models.UUIDField(default=uuid.uuid4)
    place = models.PositiveIntegerField()
    data = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("upload", "place"), name="upload_place"),)

    def __str__(self) -> str:
        return f"{self.upload} {self.place}"
