"""The right to keep the keys of sealed vaults, which one process of an installation has.

It is a lock of a Postgres session: the server takes it back the moment the process is killed, and
within half a minute when its machine is gone.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from engine.database import FAILURES
from memory import processes
from memory.services.vaults import upkeep
from memstudio.errors import StartError

logger = logging.getLogger("memstudio.vaultd")

LOCK: Final = 0x7661756C7464
TICK_S: Final = 1.0
"""So often the lease and the keys are looked at."""
PATIENCE_S: Final = 3.0
"""So long the one before may take to end: a server may notice a killed process a moment later."""
RETRY_S: Final = 0.1
STOP_WITHIN_S: Final = 1.0
ROLE: Final = "vaultd"
_SESSION: Final = (
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
)
_HOLDER: Final = """
    SELECT application_name, client_addr FROM pg_stat_activity JOIN pg_locks USING (pid)
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND (classid::bigint << 32) + objid::bigint = %s
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class Lease:
    """Holds the right while the server lives, and looks after the keys.

    ``on_loss`` is called, once every key is forgotten, when another process has it: the database
    was away, and came back to the other one first.
    """

    def __init__(self, on_loss: Callable[[], None]) -> None:
        self._on_loss = on_loss
        self._session: BaseDatabaseWrapper = connection.copy()
        self._session.inc_thread_sharing()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vault-lease", daemon=True)
        self._is_away = False

    def start(self) -> None:
        """Take it. Raises ``StartError`` when another process has it."""
        until = time.monotonic() + PATIENCE_S
        while not self._take():
            if time.monotonic() >= until:
                raise StartError(
                    f"Another process keeps the keys of sealed vaults ({self._holder()}); "
                    "stop it first: only one may."
                )
            self._stopping.wait(RETRY_S)
        self._thread.start()

    def stop(self) -> None:
        """Forget every key, and let go of the lease."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN_S)
        upkeep.let_go()
        self._session.close()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(TICK_S):
                if not self._is_held():
                    upkeep.let_go()
                    logger.error("another process keeps the keys of sealed vaults now")
                    self._on_loss()
                    return
                self._look_after()
        finally:
            connection.close()

    def _is_held(self) -> bool:
        """Whether the lease is ours; so it is while nobody can ask the database."""
        try:
            if not self._answers():
                self._session.close()
                held = self._take()
            else:
                held = True
        except (DatabaseError, *FAILURES) as error:
            if not self._is_away:
                logger.warning("the database is away: %s", str(error).partition("\n")[0])
            self._is_away = True
            return True
        self._is_away = False
        return held

    def _answers(self) -> bool:
        if self._session.connection is None:
            return False
        try:
            with self._session.cursor() as cursor:
                cursor.execute("SELECT 1")
        except (DatabaseError, *FAILURES):
            return False
        return True

    def _take(self) -> bool:
        with self._session.cursor() as cursor:
            for statement in _SESSION:
                cursor.execute(statement)
            cursor.execute("SELECT set_config('application_name', %s, false)", [_name()])
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
            return bool(cursor.fetchone()[0])

    def _holder(self) -> str:
        with self._session.cursor() as cursor:
            cursor.execute(_HOLDER, [LOCK])
            row = cursor.fetchone()
        if row is None:
            return "it ended just now"
        name, place = row
        return f"{name}, connected from {place}" if place else str(name)

    def _look_after(self) -> None:
        try:
            connection.close_if_unusable_or_obsolete()
            upkeep.sweep()
        except (DatabaseError, *FAILURES):
            # The next look; work with a vault looks at its row itself.
            connection.close()


def service() -> Lease:
    """The lease of a server of this process, which is stopped when another one has it."""
    return Lease(lambda: os.kill(os.getpid(), signal.SIGTERM))


@contextmanager
def held() -> Iterator[None]:
    """Have it while a server runs. Raises ``StartError`` when another process has it."""
    lease = service()
    lease.start()
    try:
        yield
    finally:
        lease.stop()


def _name() -> str:
    # Postgres cuts names at 63 bytes.
    return processes.name(ROLE)[:63]
