"""Sends messages to the workers. It never fails, and holds nobody up for more than a moment.

A broker that does not answer is left alone for a few seconds. What was not sent lies in its row,
and the sweep sends it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from celery import Celery, current_app

from memory.pause import Pause

logger = logging.getLogger("memory.dispatch")

ANSWER_WITHIN_S: Final = 0.5
"""For a connection, and for each answer of the broker."""
_ONCE: Final[Mapping[str, Any]] = {"max_retries": 0, "interval_start": 0, "interval_step": 0}
_SOCKETS: Final[Mapping[str, Any]] = {
    "socket_timeout": ANSWER_WITHIN_S,
    "socket_connect_timeout": ANSWER_WITHIN_S,
}


class Sender:
    """One connection to the broker, opened when it is needed and shared by the threads."""

    def __init__(self, app: Celery, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._pause = Pause("the broker", clock)
        self._lock = threading.Lock()
        self._connection: Any = None

    def send(self, task: str, args: Sequence[str], *, queue: str) -> bool:
        """Send a message; whether the broker has it."""
        # Threads that wait for one another here would add up their waits.
        if self._is_paused() or not self._lock.acquire(timeout=ANSWER_WITHIN_S):
            return False
        try:
            return not self._is_paused() and self._send(task, args, queue)
        finally:
            self._lock.release()

    def _is_paused(self) -> bool:
        return self._pause.is_on

    @property
    def is_failing(self) -> bool:
        """Whether the broker has not answered since it failed."""
        return self._pause.is_failing

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._forget()

    def _send(self, task: str, args: Sequence[str], queue: str) -> bool:
        # A connection that was kept may have died of age: that says nothing about the broker.
        tries = 1 if self._connection is None else 2
        for left in reversed(range(tries)):
            try:
                self._publish(task, args, queue)
            except Exception as error:
                self._forget()
                if not left:
                    self._pause.begin(error)
            else:
                self._pause.end()
                return True
        return False

    def _publish(self, task: str, args: Sequence[str], queue: str) -> None:
        if self._connection is None:
            self._connection = self._open()
        self._app.send_task(
            task, args=list(args), queue=queue, connection=self._connection, retry=False
        )

    def _open(self) -> Any:
        scheme = urlsplit(self._app.conf.broker_write_url or "").scheme
        options = {**_ONCE, **(_SOCKETS if scheme.startswith("redis") else {})}
        return self._app.connection_for_write(
            connect_timeout=ANSWER_WITHIN_S, transport_options=options
        )

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.release()
        except Exception as error:
            logger.debug("a dead connection did not close: %s", type(error).__name__)


_senders: dict[int, Sender] = {}
_senders_lock = threading.Lock()


def send(task: str, args: Sequence[str], *, queue: str) -> bool:
    """Send a message through the Celery application of this process; whether the broker has it."""
    app = current_app._get_current_object()
    with _senders_lock:
        sender = _senders.setdefault(id(app), Sender(app))
    return sender.send(task, args, queue=queue)


def is_failing() -> bool:
    """Whether the broker failed when this process last asked it."""
    with _senders_lock:
        return any(sender.is_failing for sender in _senders.values())
