"""One installation of a model at a time, across processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.models_install.errors import InstallFailed

try:
    import fcntl
except ImportError:  # Windows: two installations at once are the user's affair there
    fcntl = None  # type: ignore[assignment]


@contextmanager
def held(models_dir: Path, name: str) -> Iterator[None]:
    """Hold the lock of a model. A killed process lets go of it.

    Raises ``InstallFailed`` (``busy``) at once when another process or thread holds it.
    """
    models_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(models_dir / f".{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InstallFailed(
                    "This model is being installed or removed elsewhere.", code="busy"
                ) from None
        yield
    finally:
        os.close(descriptor)
