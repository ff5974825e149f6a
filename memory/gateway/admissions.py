"""Who may come in, asked of the database, and remembered for when it cannot be asked."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from django.db import DatabaseError

from memory.errors import ServiceError
from memory.gateway.refusals import no_database, no_key, refusal_of
from memory.service_threads import ServiceThreads
from memory.services.gateway.admission import Admission

logger = logging.getLogger("memory.gateway")

PATIENCE_S: Final = 1.0
"""After this a caller who was known a moment ago comes in without having been asked about."""
GRACE_S: Final = 300.0
MOST: Final = 1000
TELL_EVERY_S: Final = 10.0

Admit = Callable[[str], Admission]


class Admissions:
    """Admits callers. One who was admitted may go on for a while when the database fails."""

    def __init__(self, threads: ServiceThreads, admit: Admit, *, grace_s: float = GRACE_S) -> None:
        self._threads = threads
        self._admit = admit
        self._grace_s = grace_s
        self._known: OrderedDict[bytes, tuple[float, Admission]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Future[Admission]] = {}
        self._told = -TELL_EVERY_S

    async def admit(self, secret: str) -> Admission:
        """The caller of a secret. Raises ``Refusal``."""
        if not secret:
            raise no_key()
        name = _name(secret)
        before = self._remembered(name)
        try:
            async with asyncio.timeout(PATIENCE_S if before else None):
                found = await asyncio.shield(self._asked(name, secret))
        except ServiceError as error:
            self._known.pop(name, None)
            raise refusal_of(error) from None
        except (DatabaseError, TimeoutError) as error:
            if before is None:
                logger.exception("the database failed")
                raise no_database() from None
            self._tell(error)
            return before
        self._remember(name, found)
        return found

    def known(self, secret: str) -> Admission | None:
        """A caller who was admitted a moment ago, and may not be any more."""
        return self._remembered(_name(secret)) if secret else None

    def _asked(self, name: bytes, secret: str) -> asyncio.Future[Admission]:
        """The answer of the database; those who ask about one key at one moment share it."""
        running = self._asking.get(name)
        if running is None:
            running = asyncio.ensure_future(self._threads.run(lambda _stop: self._admit(secret)))
            self._asking[name] = running
            running.add_done_callback(lambda done: self._end(name, done))
        return running

    def _end(self, name: bytes, done: asyncio.Future[Admission]) -> None:
        self._asking.pop(name, None)
        if not done.cancelled():
            # Whoever asked may have gone meanwhile.
            done.exception()

    def _tell(self, error: Exception) -> None:
        if time.monotonic() - self._told >= TELL_EVERY_S:
            self._told = time.monotonic()
            logger.warning("keys are taken as they were: %s", type(error).__name__)

    def _remembered(self, name: bytes) -> Admission | None:
        moment, found = self._known.get(name, (0.0, None))
        return found if time.monotonic() - moment < self._grace_s else None

    def _remember(self, name: bytes, found: Admission) -> None:
        self._known[name] = (time.monotonic(), found)
        self._known.move_to_end(name)
        while len(self._known) > MOST:
            self._known.popitem(last=False)


def _name(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
