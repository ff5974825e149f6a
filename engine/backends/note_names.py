"""Names of notes: made from keys, and checked so that none leads out of its folder."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container
from typing import Final

from engine.errors import BackendFailed
from engine.records import MAX_ID

SUFFIX: Final = ".md"
MAX_NAME: Final = 80
MAX_BYTES: Final = 240
"""Of one part of a path: file systems take 255."""
MAX_DEPTH: Final = 32
MOST_TWINS: Final = 1000
UNWANTED: Final = re.compile(r'[\\/:*?"<>|#^\[\]%\x00-\x1f\x7f]+')
RESERVED: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def check(path: str) -> tuple[str, ...]:
    """The parts of a path relative to its folder. Raises ``BackendFailed`` (``outside_vault``).

    Refused are absolute paths, ``.`` and ``..``, hidden parts (``.obsidian`` in any case),
    backslashes, NUL and other control characters, and anything that is no Markdown file.
    """
    parts = tuple(path.split("/"))
    is_good = (
        len(path) <= MAX_ID
        and path.endswith(SUFFIX)
        and len(parts) <= MAX_DEPTH
        and all(_is_good(part) for part in parts)
    )
    if not is_good:
        raise BackendFailed("This is no place of a note in the vault.", code="outside_vault")
    return parts


def check_folder(path: str) -> tuple[str, ...]:
    """The parts of a folder within the vault; none for the vault itself. Raises likewise."""
    parts = tuple(part for part in path.split("/") if part)
    if path.startswith("/") or not all(_is_good(part) for part in parts):
        raise BackendFailed("This is no folder of the vault.", code="outside_vault")
    return parts


def _is_good(part: str) -> bool:
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        return False
    return (
        bool(part.strip())
        and not part.startswith(".")
        and size <= MAX_BYTES
        and not any(ord(mark) < 32 or mark in "\\\x7f" for mark in part)
        and not RESERVED.fullmatch(part)
    )


def name_for(key: str, owner: str, taken: Container[str]) -> str:
    """A new file name for a key, free among ``taken`` (folded: file systems may ignore case).

    The first characters of the key, and a mark of owner and key: two owners may use one key.
    """
    base = UNWANTED.sub("-", unicodedata.normalize("NFC", key.encode("utf-8", "replace").decode()))
    base = " ".join(base.split()).strip(" .-") or "memory"
    base = base[:MAX_NAME].encode()[: MAX_BYTES - 40].decode("utf-8", "ignore").strip(" .")
    digest = hashlib.sha256(f"{owner}\0{key}".encode("utf-8", "replace")).hexdigest()[:8]
    for twin in range(1, MOST_TWINS):
        name = f"{base} {digest}{f'-{twin}' if twin > 1 else ''}{SUFFIX}"
        if folded(name) not in taken:
            return name
    raise BackendFailed("There are too many notes of this name.")


def folded(name: str) -> str:
    """A name as a file system that ignores case and composition sees it."""
    return unicodedata.normalize("NFC", name).casefold()
