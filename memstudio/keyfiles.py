"""The key files of the home, as a backup takes them along and a restore puts them back."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from django.conf import settings

from memstudio import env

FILES: Final[Mapping[str, str]] = {
    "django.key": "MEMORY_STUDIO_SECRET_KEY",
    "encryption.key": "MEMORY_STUDIO_ENCRYPTION_KEY",
}
"""Each file with the variable that takes its place."""


def in_force() -> dict[str, str]:
    """The keys in use by the names of their files, wherever they come from."""
    return {"django.key": settings.SECRET_KEY, "encryption.key": settings.ENCRYPTION_KEY}


def put(home: Path, keys: Mapping[str, str]) -> list[str]:
    """Put keys into the home, keeping a file that differs as ``….before-restore``.

    Returns the variables that are set to something else, and so win over the files.
    """
    beaten: list[str] = []
    for name, variable in FILES.items():
        if name not in keys:
            continue
        given = env.secret(variable)
        if given and given != keys[name]:
            beaten.append(variable)
        _put(home / "secrets" / name, keys[name])
    return beaten


def _put(path: Path, key: str) -> None:
    text = f"{key}\n"
    with contextlib.suppress(FileNotFoundError):
        if path.read_text(encoding="ascii") == text:
            return
        path.rename(path.with_name(f"{path.name}.before-restore"))
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)
