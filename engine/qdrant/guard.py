"""Keeps a server that is down or slow from costing every search its time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock, Thread
from typing import Final, TypeVar

from engine.net.breaker import CircuitBreaker
from engine.qdrant.errors import OUTAGES, QdrantFailed

logger = logging.getLogger("engine.qdrant")

Answer = TypeVar("Answer")

PAUSE_S: Final = 10.0
GRACE_S: Final = 0.25
"""How long a search waits for a probe before it goes on without the server."""
LASTING: Final = OUTAGES | {"qdrant_auth", "qdrant_blocked"}


class Guard:
    """The first failure closes the way; after a pause one probe, beside the searches, opens it.

    So an outage costs one search the time limit of a request, and the others next to nothing. The
    log gets one line when it begins and one when it ends. Thread-safe.
    """

    def __init__(
        self,
        probe: Callable[[], object],
        *,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probe = probe
        self._breaker: CircuitBreaker[QdrantFailed] = CircuitBreaker(
            threshold=1, pause_s=pause_s, clock=clock, alone=True
        )
        self._lock = Lock()
        self._probing: Thread | None = None

    @property
    def failure(self) -> QdrantFailed | None:
        """Why the way is closed; None while it is open."""
        return self._breaker.last

    def run(self, step: Callable[[], Answer]) -> Answer:
        """Carry out a step unless the way is closed. Raises ``QdrantFailed``."""
        self._admit()
        return self.note(step)

    def note(self, step: Callable[[], Answer]) -> Answer:
        """Carry out a step whatever was before, and learn from it. Raises ``QdrantFailed``."""
        was_closed = self._breaker.last is not None
        try:
            answer = step()
        except QdrantFailed as error:
            if error.code in LASTING:
                if not was_closed:
                    logger.warning("Qdrant is out (%s); searches go on without it", error.code)
                self._breaker.failed(error)
            raise
        self._breaker.succeeded()
        if was_closed:
            logger.warning("Qdrant is back")
        return answer

    def _admit(self) -> None:
        if self._breaker.last is None:
            return
        with self._lock:
            thread = self._probing
            if thread is None or not thread.is_alive():
                self._breaker.check()
                thread = Thread(target=self._ask, name="qdrant-probe", daemon=True)
                self._probing = thread
                thread.start()
        thread.join(GRACE_S)
        failure = self._breaker.last
        if failure is not None:
            raise QdrantFailed(str(failure), code=failure.code)

    def _ask(self) -> None:
        try:
            self.note(self._probe)
        except QdrantFailed:
            # It is remembered; the next probe comes after another pause.
            return
