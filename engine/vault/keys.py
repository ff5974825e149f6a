"""The key of a sealed vault, and how a passphrase or a recovery key locks it away.

A vault has one random key for good. It is stored only wrapped: once under a key that Argon2id
makes of the passphrase, once under one that HKDF makes of the recovery key. A new passphrase
wraps the same key again; no row is touched.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.vault.errors import VaultError

KEY_BYTES: Final = 32
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
LEAST_PASSPHRASE: Final = 8
MOST_PASSPHRASE: Final = 1024
VERSION: Final = 1
RECOVERY_BYTES: Final = 25
GROUP: Final = 5

_turn = threading.Lock()


@dataclass(frozen=True, slots=True)
class Cost:
    """What making a key of a passphrase costs: memory in KiB, passes over it, lanes."""

    memory_kib: int
    iterations: int
    lanes: int

    @property
    def work(self) -> int:
        """Memory times passes: what a guess costs an attacker."""
        return self.memory_kib * self.iterations


STANDARD: Final = Cost(65_536, 3, 4)
"""The second choice of RFC 9106: 64 MiB, three passes, four lanes."""

FLOOR: Final = Cost(19_456, 2, 1)
"""Less than this is refused, whatever an envelope says (OWASP's least for Argon2id)."""

CEILING: Final = Cost(1 << 20, 16, 16)
"""More than this would only exhaust the machine."""


class VaultKey:
    """32 random bytes. ``wipe`` overwrites them.

    Python and the cipher behind it make copies that nobody can reach: wiping shortens the time a
    key lies in memory, it does not prove that none is left.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError("a vault key has 32 bytes")
        self._secret = bytearray(secret)
        self._is_wiped = False

    @classmethod
    def new(cls) -> VaultKey:
        """A random key."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @property
    def secret(self) -> bytes:
        """The bytes. Raises ``VaultError`` (``vault_locked``) after ``wipe``."""
        if self._is_wiped:
            raise VaultError("The vault is locked.", code="vault_locked")
        return bytes(self._secret)

    def wipe(self) -> None:
        """Overwrite the bytes; the key cannot be used any more."""
        self._secret[:] = bytes(KEY_BYTES)
        self._is_wiped = True

    def __repr__(self) -> str:
        return "VaultKey(…)"


def check_passphrase(passphrase: str) -> None:
    """Refuse a new passphrase that is too short or too long (``weak_passphrase``)."""
    length = len(_normal(passphrase))
    if length < LEAST_PASSPHRASE:
        message = f"A passphrase has at least {LEAST_PASSPHRASE} characters."
        raise VaultError(message, code="weak_passphrase")
    if length > MOST_PASSPHRASE:
        message = f"A passphrase has at most {MOST_PASSPHRASE} characters."
        raise VaultError(message, code="weak_passphrase")


def wrap(key: VaultKey, passphrase: str, *, vault: str, cost: Cost = STANDARD) -> str:
    """The key under a passphrase, as JSON. Raises ``VaultError`` (``weak_passphrase``)."""
    check_passphrase(passphrase)
    salt = secrets.token_bytes(SALT_BYTES)
    head = {"v": VERSION, "kdf": "argon2id", **asdict(cost), "salt": _text(salt)}
    return _wrapped(key, _from_passphrase(passphrase, salt, cost), head, vault)


def unwrap(envelope: str, passphrase: str, *, vault: str) -> VaultKey:
    """The key of an envelope of ``wrap``.

    Raises ``VaultError``: ``wrong_passphrase``, or ``sealed_damaged`` for an envelope that is
    broken, belongs to another vault or asks for less than ``FLOOR``.
    """
    head = _read(envelope, "argon2id")
    cost = _cost(head)
    salt = _bytes(head, "salt")
    if len(passphrase) > MOST_PASSPHRASE:
        raise _wrong()
    return _unwrapped(head, lambda: _from_passphrase(passphrase, salt, cost), vault)


def is_current(envelope: str, cost: Cost = STANDARD) -> bool:
    """Whether an envelope costs a guess what a new one does; an older one is wrapped again."""
    return _cost(_read(envelope, "argon2id")).work >= cost.work


def new_recovery() -> str:
    """A recovery key: 200 random bits as eight groups of five letters and digits."""
    text = base64.b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode()
    return "-".join(text[start : start + GROUP] for start in range(0, len(text), GROUP))


def wrap_recovery(key: VaultKey, recovery: str, *, vault: str) -> str:
    """The key under a recovery key, as JSON."""
    salt = secrets.token_bytes(SALT_BYTES)
    head = {"v": VERSION, "kdf": "hkdf-sha256", "salt": _text(salt)}
    return _wrapped(key, _from_recovery(recovery, salt), head, vault)


def unwrap_recovery(envelope: str, recovery: str, *, vault: str) -> VaultKey:
    """The key of an envelope of ``wrap_recovery``. Raises as ``unwrap``."""
    head = _read(envelope, "hkdf-sha256")
    salt = _bytes(head, "salt")
    return _unwrapped(head, lambda: _from_recovery(recovery, salt), vault)


def _wrapped(key: VaultKey, outer: bytes, head: dict[str, object], vault: str) -> str:
    nonce = secrets.token_bytes(NONCE_BYTES)
    sealed = AESGCM(outer).encrypt(nonce, key.secret, _bound(head, vault))
    return json.dumps({**head, "nonce": _text(nonce), "key": _text(sealed)})


def _unwrapped(head: dict[str, object], outer: Callable[[], bytes], vault: str) -> VaultKey:
    nonce, sealed = _bytes(head, "nonce"), _bytes(head, "key")
    if len(nonce) != NONCE_BYTES:
        raise _damaged()
    bound = {name: head[name] for name in head if name not in ("nonce", "key")}
    try:
        return VaultKey(AESGCM(outer()).decrypt(nonce, sealed, _bound(bound, vault)))
    except (InvalidTag, ValueError):
        raise _wrong() from None


def _bound(head: dict[str, object], vault: str) -> bytes:
    """What an envelope is bound to: its vault, and how its key is made."""
    return json.dumps([vault, sorted(head.items())], separators=(",", ":")).encode()


def _from_passphrase(passphrase: str, salt: bytes, cost: Cost) -> bytes:
    made = Argon2id(
        salt=salt,
        length=KEY_BYTES,
        iterations=cost.iterations,
        lanes=cost.lanes,
        memory_cost=cost.memory_kib,
    )
    # One at a time: many at once would take as much memory as there are guesses.
    with _turn:
        return made.derive(_normal(passphrase).encode("utf-8", "surrogatepass"))


def _from_recovery(recovery: str, salt: bytes) -> bytes:
    letters = "".join(recovery.split()).replace("-", "").upper()
    made = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=b"memory-studio recovery")
    return made.derive(letters.encode("utf-8", "surrogatepass"))


def _normal(passphrase: str) -> str:
    # The same keys give other code points on other systems.
    return unicodedata.normalize("NFC", passphrase)


def _read(envelope: str, kind: str) -> dict[str, object]:
    try:
        head = json.loads(envelope)
    except (ValueError, RecursionError):
        raise _damaged() from None
    if not isinstance(head, dict) or head.get("v") != VERSION or head.get("kdf") != kind:
        raise _damaged()
    return head


def _cost(head: dict[str, object]) -> Cost:
    values = [head.get(name) for name in ("memory_kib", "iterations", "lanes")]
    numbers = [value for value in values if type(value) is int]
    if len(numbers) != len(values):
        raise _damaged()
    cost = Cost(*numbers)
    is_weak = (
        cost.memory_kib < FLOOR.memory_kib
        or cost.iterations < FLOOR.iterations
        or cost.lanes < FLOOR.lanes
    )
    is_absurd = (
        cost.memory_kib > CEILING.memory_kib
        or cost.iterations > CEILING.iterations
        or cost.lanes > CEILING.lanes
    )
    if is_weak or is_absurd:
        raise VaultError(
            "The envelope asks for a cost that is not allowed.",
            code="sealed_damaged",
            reason="weak" if is_weak else "absurd",
        )
    return cost


def _bytes(head: dict[str, object], name: str) -> bytes:
    try:
        return base64.b64decode(str(head[name]), validate=True)
    except (KeyError, ValueError):
        raise _damaged() from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _wrong() -> VaultError:
    return VaultError("This does not open the vault.", code="wrong_passphrase")


def _damaged() -> VaultError:
    return VaultError("The vault's envelope is damaged.", code="sealed_damaged")
