"""From the bytes of a file to the text of a knowledge card: UTF-8 text and Markdown only."""

from __future__ import annotations

from typing import Final

from engine.vault.errors import VaultError

BOM: Final = b"\xef\xbb\xbf"
SIGNATURES: Final = (
    (b"%PDF-", "%PDF-", "a PDF document"),
    (b"PK\x03\x04", "PK", "a ZIP archive or an Office document"),
    (b"PK\x05\x06", "PK", "a ZIP archive"),
    (b"\xd0\xcf\x11\xe0", "D0CF11E0", "an older Office document"),
    (b"{\\rtf", "{\\rtf", "an RTF document"),
    (b"\x89PNG", "PNG", "an image"),
    (b"\xff\xd8\xff", "FFD8FF", "an image"),
    (b"GIF8", "GIF8", "an image"),
    (b"\x1f\x8b", "1F8B", "a compressed file"),
    (b"\x7fELF", "ELF", "a program"),
    (b"\xff\xfe", "FFFE", "text in UTF-16"),
    (b"\xfe\xff", "FEFF", "text in UTF-16"),
)
"""How files begin that are no text: bytes, how the reason names them, what they are."""

MAX_TITLE: Final = 200
LEAST_BYTE: Final = {0xE0: 0xA0, 0xF0: 0x90}
"""Smallest second byte after a lead byte that could be written shorter."""


def read_text(data: bytes) -> str:
    """The text of a file. A byte order mark is removed, nothing else is changed.

    Raises ``VaultError``: ``unsupported_type`` (``reason`` says how it begins), ``invalid_utf8``
    (``reason`` says what is wrong where it can be named), ``invalid_text`` (a NUL, or nothing but
    blanks).
    """
    for start, name, what in SIGNATURES:
        if data.startswith(start):
            raise VaultError(
                f"This is {what}; convert it to text first.",
                code="unsupported_type",
                reason=f"starts with {name}",
            )
    body = data.removeprefix(BOM)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VaultError(
            "This is no UTF-8 text.", code="invalid_utf8", reason=_fault(body, error.start)
        ) from None
    return checked(text)


def checked(text: str) -> str:
    """A text that came as text. Raises ``VaultError``: ``invalid_text``, ``invalid_utf8``."""
    if "\0" in text:
        raise VaultError("The text holds a NUL.", code="invalid_text", reason="NUL")
    if not text.strip():
        raise VaultError("There is no text.", code="invalid_text", reason="empty")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise VaultError(
            "The text holds half a character.", code="invalid_utf8", reason="surrogate"
        ) from None
    return text


def title_of(title: str, file_name: str = "") -> str:
    """A title as one line: the one that was given, else the name of the file.

    Raises ``VaultError`` (``invalid_text``) when neither says anything.
    """
    for candidate in (title, file_name.replace("\\", "/").rsplit("/", 1)[-1]):
        line = " ".join(candidate.replace("\0", " ").split())
        if line:
            return line.encode("utf-8", "replace").decode("utf-8")[:MAX_TITLE]
    raise VaultError("A card wants a title.", code="invalid_text", reason="title")


def _fault(data: bytes, start: int) -> str:
    """What is wrong with the sequence at ``start``; empty where it is merely cut or stray."""
    lead, second = data[start], data[start + 1] if start + 1 < len(data) else None
    if lead in (0xC0, 0xC1):
        return "overlong"
    if lead > 0xF4 or (lead == 0xF4 and second is not None and second > 0x8F):
        return "above U+10FFFF"
    if second is None or second & 0xC0 != 0x80:
        return ""
    if second < LEAST_BYTE.get(lead, 0):
        return "overlong"
    return "surrogate" if lead == 0xED and second > 0x9F else ""
