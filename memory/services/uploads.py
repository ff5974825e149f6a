"""Uploaded files on their way to a worker: in the database, which every host reaches."""

from __future__ import annotations

import io
import uuid
from datetime import timedelta
from typing import IO, Final

from django.db import transaction
from django.utils.translation import gettext as _

from memory.clock import now
from memory.errors import Invalid
from memory.models import UploadPart

PART_BYTES: Final = 1 << 20
LIFE: Final = timedelta(days=7)


def keep(file: IO[bytes]) -> str:
    """Store a file; its name."""
    name, moment, place = uuid.uuid4(), now(), 0
    with transaction.atomic():
        while (block := file.read(PART_BYTES)) or not place:
            UploadPart.objects.create(upload=name, place=place, data=block, created_at=moment)
            place += 1
    return str(name)


def read(name: str) -> IO[bytes]:
    """The file. Raises ``Invalid`` when it has been forgotten."""
    parts = UploadPart.objects.filter(upload=name).order_by("place")
    whole = b"".join(bytes(data) for data in parts.values_list("data", flat=True))
    if not whole and not parts.exists():
        raise Invalid(_("The uploaded file is no longer there."), code="upload_gone")
    return io.BytesIO(whole)


def forget(name: str) -> None:
    """Remove a file."""
    UploadPart.objects.filter(upload=name).delete()


def forget_old() -> None:
    """Remove what nobody has read for a week."""
    UploadPart.objects.filter(created_at__lt=now() - LIFE).delete()
