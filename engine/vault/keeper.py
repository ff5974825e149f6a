"""Keys and indexes of unlocked vaults: in one process only, and gone the moment they are locked.

Whoever works with them says which numbers of the vault's row it has read (``Version``); what was
made under other numbers is never handed out.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from engine.vault.capacity import MAX_VAULTS
from engine.vault.errors import VaultError
from engine.vault.freeing import forbid_core_dumps, give_back
from engine.vault.index import VaultIndex, VectorCache
from engine.vault.keys import VaultKey
from engine.vault.sealing import Sealer

MOST_FAILURES: Final = 5
PAUSE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Version:
    """The numbers of a vault's row: of its content, its policy, its locks."""

    revision: int
    policy: int
    lock: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What is held of one vault."""

    is_unlocked: bool
    is_indexed: bool
    chunks: int = 0
    embedded: int = 0
    text_bytes: int = 0
    signature: str = ""


@dataclass(slots=True)
class _Session:
    sealer: Sealer
    generation: int
    auto_lock_s: float
    used: float


@dataclass(eq=False, slots=True)
class Slot:
    """The room of one vault's index. ``turn`` is held while it is built, ``filling`` while its
    missing vectors are made: that may take minutes, and searches by words go on."""

    turn: threading.RLock = field(default_factory=threading.RLock)
    filling: threading.RLock = field(default_factory=threading.RLock)
    vectors: VectorCache = field(default_factory=VectorCache)
    version: Version | None = None
    index: VaultIndex | None = None
    is_dropped: bool = False


Build = Callable[[VectorCache], VaultIndex]


class Keeper:
    """Thread-safe. Vaults are named by their ids."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._slots: OrderedDict[str, Slot] = OrderedDict()
        self._failures: dict[str, tuple[int, float]] = {}
        self.builds = 0
        """How many indexes were built; tests look whether one was built once."""

    def unlock(self, vault: str, key: VaultKey, *, generation: int, auto_lock_s: float) -> None:
        """Keep the key of a vault. ``auto_lock_s`` 0 never locks by itself."""
        forbid_core_dumps()
        session = _Session(Sealer(key), generation, auto_lock_s, self._clock())
        with self._lock:
            before = self._sessions.pop(vault, None)
            self._sessions[vault] = session
            self._failures.pop(vault, None)
        if before is not None:
            before.sealer.wipe()

    def check_pace(self, vault: str) -> None:
        """Refuse a further guess for a while after several wrong ones (``rate_limited``)."""
        with self._lock:
            count, last = self._failures.get(vault, (0, 0.0))
            wait = last + PAUSE_S - self._clock()
        if count >= MOST_FAILURES and wait > 0:
            message = f"Too many wrong passphrases; try again in {int(wait) + 1} seconds."
            raise VaultError(message, code="rate_limited", reason="passphrase")

    def missed(self, vault: str) -> None:
        """Count a wrong guess."""
        with self._lock:
            count, _last = self._failures.get(vault, (0, 0.0))
            self._failures[vault] = (count + 1, self._clock())

    def lock(self, vault: str) -> bool:
        """Forget a vault's key, and the indexes and vectors of every vault; whether it was open."""
        with self._lock:
            session = self._sessions.pop(vault, None)
            dropped = self._drop_all()
        if session is not None:
            session.sealer.wipe()
        if dropped:
            give_back()
        return session is not None

    def lock_all(self) -> None:
        """Forget everything."""
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
            dropped = self._drop_all()
        for session in sessions:
            session.sealer.wipe()
        if dropped:
            give_back()

    def sweep(self) -> list[str]:
        """Lock the vaults that nobody used for their time; their ids."""
        now = self._clock()
        with self._lock:
            idle = [
                vault
                for vault, session in self._sessions.items()
                if session.auto_lock_s and now - session.used >= session.auto_lock_s
            ]
        for vault in idle:
            self.lock(vault)
        return idle

    def sealer(self, vault: str, generation: int, *, uses: bool = True) -> Sealer:
        """What opens and seals the fields of a vault. Raises ``VaultError`` (``vault_locked``).

        A vault that another process has locked meanwhile (another generation) is locked here too.
        """
        self.sweep()
        with self._lock:
            session = self._sessions.get(vault)
            if session is not None and session.generation == generation:
                if uses:
                    session.used = self._clock()
                return session.sealer
        if session is not None:
            self.lock(vault)
        raise VaultError("The vault is locked.", code="vault_locked")

    def is_unlocked(self, vault: str, generation: int, *, uses: bool = False) -> bool:
        """Whether its key is here; asking alone is no use of it."""
        try:
            self.sealer(vault, generation, uses=uses)
        except VaultError:
            return False
        return True

    def seconds_left(self, vault: str) -> float | None:
        """How long until it locks by itself without use; None when it does not, or is locked."""
        with self._lock:
            session = self._sessions.get(vault)
            if session is None or not session.auto_lock_s:
                return None
            return max(0.0, session.used + session.auto_lock_s - self._clock())

    def unlocked(self) -> list[str]:
        """The vaults whose keys are here."""
        with self._lock:
            return list(self._sessions)

    def generations(self) -> dict[str, int]:
        """The vaults whose keys are here, each with the number of locks it was unlocked under."""
        with self._lock:
            return {vault: session.generation for vault, session in self._sessions.items()}

    def index(self, vault: str, version: Version, build: Build) -> tuple[VaultIndex, Slot]:
        """The index of a vault as of a version, built when there is none.

        Who comes while it is being built waits and gets the same one. At most ``MAX_VAULTS`` are
        kept; the one that was used longest ago goes. Raises what ``build`` raises, and
        ``VaultError`` (``cancelled``) when everything was locked meanwhile.
        """
        slot = self._slot(vault)
        with slot.turn:
            if slot.index is None or slot.version != version:
                slot.index = None
                made = build(slot.vectors)
                with self._lock:
                    if slot.is_dropped:
                        raise VaultError("The vault was locked.", code="cancelled")
                    slot.index, slot.version = made, version
                    self.builds += 1
            return slot.index, slot

    def drop(self, vault: str) -> None:
        """Forget the index of one vault."""
        with self._lock:
            slot = self._slots.pop(vault, None)
            if slot is not None:
                _emptied(slot)

    def figures(self, vault: str, version: Version) -> Figures:
        """What is held of a vault as of a version."""
        is_unlocked = self.is_unlocked(vault, version.lock)
        with self._lock:
            slot = self._slots.get(vault)
            index = slot.index if slot is not None and slot.version == version else None
        if index is None:
            return Figures(is_unlocked, is_indexed=False)
        signature = index.vectors.signature
        return Figures(
            is_unlocked,
            is_indexed=True,
            chunks=len(index.chunks),
            embedded=index.embedded,
            text_bytes=index.text_bytes,
            signature=str(signature) if signature else "",
        )

    @property
    def cached(self) -> int:
        """How many vaults have an index here."""
        with self._lock:
            return sum(slot.index is not None for slot in self._slots.values())

    def _slot(self, vault: str) -> Slot:
        with self._lock:
            slot = self._slots.setdefault(vault, Slot())
            self._slots.move_to_end(vault)
            while len(self._slots) > MAX_VAULTS:
                _name, oldest = self._slots.popitem(last=False)
                _emptied(oldest)
            return slot

    def _drop_all(self) -> int:
        count = len(self._slots)
        for slot in self._slots.values():
            _emptied(slot)
        self._slots.clear()
        return count


def _emptied(slot: Slot) -> None:
    # What still works with the index holds it until its next check.
    slot.is_dropped = True
    slot.index, slot.version = None, None
    slot.vectors = VectorCache()
