"""Sealing the fields of a vault's rows: AES-256-GCM, each bound to its place.

The place (vault, row, revision, field) is authenticated with the text, so that nobody who can
write the database can give a text another row's, an older revision's or another field's place.
What stays visible: that there are rows, how long their fields are, and when they changed.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.vault.errors import VaultError
from engine.vault.keys import KEY_BYTES, NONCE_BYTES, VaultKey

FORMAT: Final = b"\x01"
TAG_BYTES: Final = 16
DOMAIN: Final = b"memory-studio vault field 1"
DIGESTS: Final = b"memory-studio vault digests 1"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sealed text stands. ``vault`` and ``row`` are ids that never change."""

    vault: str
    row: str
    revision: int
    field: str

    @property
    def bound(self) -> bytes:
        """The place as bytes that no other place has."""
        parts = (self.vault, self.row, str(self.revision), self.field)
        encoded = (part.encode("utf-8") for part in parts)
        return DOMAIN + b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


class Sealer:
    """Seals and opens the fields of one vault while its key is there."""

    def __init__(self, key: VaultKey) -> None:
        self._key = key
        self._cipher: AESGCM | None = AESGCM(key.secret)

    def seal(self, data: bytes, place: Place) -> bytes:
        """The data, sealed. Raises ``VaultError`` (``vault_locked``)."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return FORMAT + nonce + self._working().encrypt(nonce, data, place.bound)

    def open(self, sealed: bytes, place: Place) -> bytes:
        """The data. Raises ``VaultError``: ``sealed_damaged``, ``vault_locked``."""
        cipher = self._working()
        start = len(FORMAT) + NONCE_BYTES
        try:
            if sealed[: len(FORMAT)] != FORMAT or len(sealed) < start + TAG_BYTES:
                raise InvalidTag
            return cipher.decrypt(sealed[len(FORMAT) : start], sealed[start:], place.bound)
        except InvalidTag:
            raise VaultError(
                "A sealed text is damaged or not in its place.", code="sealed_damaged"
            ) from None

    def seal_text(self, text: str, place: Place) -> bytes:
        """A text, sealed."""
        return self.seal(text.encode("utf-8"), place)

    def open_text(self, sealed: bytes, place: Place) -> str:
        """The text that was sealed."""
        return self.open(sealed, place).decode("utf-8")

    def digest(self, text: str) -> str:
        """What stands for a text where it has to be found again, in hex.

        Only who has the key can tell which text it is, or whether two vaults hold the same.
        """
        made = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=DIGESTS)
        key = made.derive(self._key.secret)
        return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def wipe(self) -> None:
        """Let go of the key; what comes after is refused."""
        self._cipher = None
        self._key.wipe()

    def _working(self) -> AESGCM:
        cipher = self._cipher
        if cipher is None:
            raise VaultError("The vault is locked.", code="vault_locked")
        return cipher
