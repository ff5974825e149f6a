"""Where a studio of this machine answers: kept in the home while it holds it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memstudio import home
from memstudio.errors import StartError

NAME: Final = "studio.url"


@contextlib.contextmanager
def published(folder: Path, url: str) -> Iterator[None]:
    """Tell the address to commands on the same home."""
    path = folder / NAME
    path.write_text(f"{url}\n", encoding="utf-8")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def find(folder: Path) -> str | None:
    """The address of the studio that holds the home; None when none does.

    A file that a killed studio left is not believed: another program may have its port by now.
    """
    try:
        url = (folder / NAME).read_text(encoding="utf-8").strip()
    except OSError:
        return None
    try:
        with home.lock(folder):
            return None
    except StartError:
        return url
