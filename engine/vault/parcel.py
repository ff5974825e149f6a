"""The encrypted file in which a vault travels from one machine to another.

One line of JSON (the envelope: how a passphrase opens it), then frames of at most 64 KiB, each a
length of four bytes and an AES-256-GCM text. A frame is bound to its number and to whether it is
the last: frames cannot be left out, doubled, moved or cut off at the end.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from typing import IO, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.vault import keys
from engine.vault.errors import VaultError
from engine.vault.keys import NONCE_BYTES, STANDARD, Cost, VaultKey

MAGIC: Final = "memory-studio-vault"
FRAME: Final = 64 * 1024
MOST_HEAD: Final = 4096
MOST_LINE: Final = 64 << 20
"""Longest record that is taken: a card with its body."""


def write(
    records: Iterable[object], file: IO[bytes], passphrase: str, *, cost: Cost = STANDARD
) -> None:
    """Write records (JSON values) so that only the passphrase opens them.

    Raises ``VaultError`` (``weak_passphrase``).
    """
    key = VaultKey.new()
    envelope = keys.wrap(key, passphrase, vault=MAGIC, cost=cost)
    file.write(json.dumps({"file": MAGIC, "envelope": envelope}).encode() + b"\n")
    cipher = AESGCM(key.secret)
    key.wipe()
    number, kept = 0, bytearray()
    for record in records:
        kept += json.dumps(record, ensure_ascii=False).encode() + b"\n"
        while len(kept) > FRAME:
            _write_frame(file, cipher, number, bytes(kept[:FRAME]), is_last=False)
            del kept[:FRAME]
            number += 1
    _write_frame(file, cipher, number, bytes(kept), is_last=True)


def read(file: IO[bytes], passphrase: str) -> Iterator[object]:
    """The records of a file, one after the other.

    Raises ``VaultError``: ``wrong_passphrase``, ``sealed_damaged`` (also while reading: nothing
    that was given until then is to be kept).
    """
    key = keys.unwrap(_envelope(file), passphrase, vault=MAGIC)
    cipher = AESGCM(key.secret)
    key.wipe()
    kept = bytearray()
    for text in _frames(file, cipher):
        kept += text
        *lines, rest = kept.split(b"\n")
        kept = bytearray(rest)
        if len(kept) > MOST_LINE:
            raise _damaged()
        yield from map(_record, map(bytes, lines))
    if kept:
        raise _damaged()


def _envelope(file: IO[bytes]) -> str:
    try:
        head = json.loads(file.readline(MOST_HEAD))
    except (ValueError, RecursionError):
        head = None
    envelope = head.get("envelope") if isinstance(head, dict) else None
    if not isinstance(envelope, str) or not isinstance(head, dict) or head.get("file") != MAGIC:
        raise VaultError("This is no exported vault.", code="sealed_damaged", reason="no vault")
    return envelope


def _write_frame(
    file: IO[bytes], cipher: AESGCM, number: int, text: bytes, *, is_last: bool
) -> None:
    nonce = secrets.token_bytes(NONCE_BYTES)
    sealed = nonce + cipher.encrypt(nonce, text, _bound(number, is_last=is_last))
    file.write(len(sealed).to_bytes(4, "big") + sealed)


def _frames(file: IO[bytes], cipher: AESGCM) -> Iterator[bytes]:
    number, sealed = 0, _next(file)
    if sealed is None:
        raise _damaged()
    while sealed is not None:
        following = _next(file)
        bound = _bound(number, is_last=following is None)
        try:
            yield cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound)
        except InvalidTag:
            raise _damaged() from None
        number, sealed = number + 1, following


def _next(file: IO[bytes]) -> bytes | None:
    length = file.read(4)
    if not length:
        return None
    size = int.from_bytes(length, "big")
    if len(length) < 4 or not NONCE_BYTES < size <= FRAME + 64:
        raise _damaged()
    sealed = file.read(size)
    if len(sealed) < size:
        raise _damaged()
    return sealed


def _bound(number: int, *, is_last: bool) -> bytes:
    return b"%s %d %d" % (MAGIC.encode(), number, is_last)


def _record(line: bytes) -> object:
    try:
        record: object = json.loads(line)
    except (ValueError, RecursionError):
        raise _damaged() from None
    return record


def _damaged() -> VaultError:
    return VaultError("The file is damaged or was cut off.", code="sealed_damaged")
