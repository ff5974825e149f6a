"""What the one-process studio runs beside its web server: a Celery worker and a ticker.

A message on ``memory://`` dies with the process and a Job row does not: the ticker sends again
whatever no worker holds.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from celery import Celery
from celery.bootsteps import RUN
from celery.worker import WorkController, state
from celery.worker.consumer import Consumer
from django.db import close_old_connections, connections

from memstudio import home
from memstudio.celery import QUEUES
from memstudio.front import Service

logger = logging.getLogger("memstudio.embedded")

SWEEP_EVERY_S: Final = 30.0
POLL_S: Final = 0.1
STOP_WITHIN_S: Final = 1.0

_building = threading.Lock()


def services(app: Celery) -> list[Service]:
    """One worker for each queue, so that long work never holds up short work, and the ticker."""
    return [*(Worker(app, queue) for queue in QUEUES), Ticker(_begin, _tick)]


def watcher() -> Ticker:
    """Beside workers of their own: the model is loaded, and no job waits for a lost message."""
    return Ticker(_warm_up, _sweep)


class HomeLock:
    """Holds the home while the server lives, for servers that were not started by ``studio``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = contextlib.ExitStack()

    def start(self) -> None:
        """Take the lock. Raises ``StartError`` when another server has it."""
        self._held.enter_context(home.lock(self._path))

    def stop(self) -> None:
        """Let go of it."""
        self._held.close()


class Worker:
    """A Celery worker of one thread, for one queue, inside this process."""

    def __init__(self, app: Celery, queue: str) -> None:
        self._app = app
        self._queue = queue
        self._thread = threading.Thread(target=self._run, name=f"worker-{queue}", daemon=True)

    def start(self) -> None:
        """Start the worker in a thread of its own."""
        _jobs().start_working()
        self._thread.start()

    def stop(self) -> None:
        """Stop taking messages and wait shortly for the job that runs; its row remembers it."""
        _jobs().stop_working()
        # This is Celery's own flag for every worker of the process; each loop reads it.
        state.should_stop = 0
        self._thread.join(STOP_WITHIN_S)
        if not self._thread.is_alive():
            state.should_stop = None

    def _run(self) -> None:
        try:
            self._controller().start()
        finally:
            connections.close_all()

    def _controller(self) -> WorkController:
        # Not celery.apps.worker.Worker: that one takes the signals and prints a banner.
        with _building:
            return WorkController(
                app=self._app,
                hostname=f"{self._queue}@studio",
                # Celery keeps the choice of queues per application: the consumer narrows it.
                queues=list(QUEUES),
                pool="solo",
                consumer_cls=QuickConsumer,
                loglevel="ERROR",
                without_gossip=True,
                without_mingle=True,
                without_heartbeat=True,
            )


class QuickConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    """A consumer of the queue its host name begins with, that stops quickly.

    Celery's own loop for this transport looks for a stop every other second only.
    """

    def loop(self, *_args: Any) -> None:
        """Take messages of the one queue until the worker stops."""
        queue = self.app.amqp.queues[self.hostname.split("@")[0]]
        self.task_consumer = self.app.amqp.TaskConsumer(
            self.connection, queues=[queue], on_decode_error=self.on_decode_error
        )
        self.task_consumer.on_message = self.create_task_handler()
        self.task_consumer.consume()
        self.on_ready()
        while self.blueprint.state == RUN and self.connection:
            state.maybe_shutdown()
            if self.qos.prev != self.qos.value:
                self.qos.update()
            self.perform_pending_operations()
            with contextlib.suppress(socket.timeout):
                self.connection.drain_events(timeout=POLL_S)


class Ticker:
    """Calls ``first`` at the start, then ``step``, at once and every ``SWEEP_EVERY_S`` seconds."""

    def __init__(self, first: Callable[[], object], step: Callable[[], object]) -> None:
        self._first = first
        self._step = step
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start ticking in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop at once."""
        self._stopping.set()
        self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        try:
            self._guarded(self._first)
            self._guarded(self._step)
            while not self._stopping.wait(SWEEP_EVERY_S):
                self._guarded(self._step)
        finally:
            connections.close_all()

    def _guarded(self, step: Callable[[], object]) -> None:
        # A database that is busy now will answer the next sweep.
        try:
            close_old_connections()
            step()
        except Exception:
            logger.exception("the sweep of the jobs failed")


def _jobs() -> ModuleType:
    # Not before Django is set up.
    from memory import jobs

    return jobs


# Imported when the thread runs: services take their time, and the first page need not wait.


def _begin() -> None:
    from memory.services import housekeeping

    housekeeping.start()


def _tick() -> None:
    from memory.services import housekeeping

    housekeeping.tick()


def _warm_up() -> None:
    from memory import jobs
    from memory.services import housekeeping

    jobs.void_own_leases(alone=False)
    housekeeping.warm_up()


def _sweep() -> None:
    from memory import jobs

    jobs.sweep()
