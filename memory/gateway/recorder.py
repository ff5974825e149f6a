"""Writes receipts down, one after the other, off the way of the chats."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from django.db import close_old_connections, connections

from memory.services.gateway import receipts
from memory.services.gateway.receipts import Receipt

logger = logging.getLogger("memory.gateway")

MOST_WAITING: Final = 10_000
STOP_WITHIN_S: Final = 2.0


class Recorder:
    """A thread of its own. When it cannot keep up, receipts are lost rather than chats delayed."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="gateway-receipts")
        self._lock = threading.Lock()
        self._waiting = 0

    def put(self, receipt: Receipt) -> None:
        """Have a receipt written down. Never waits."""
        with self._lock:
            if self._waiting >= MOST_WAITING:
                logger.warning("a receipt is lost: too many are waiting")
                return
            self._waiting += 1
        try:
            self._pool.submit(self._keep, receipt)
        except RuntimeError:
            logger.warning("a receipt is lost: the studio is stopping")

    def close(self) -> None:
        """Write down what waits, for a moment at most."""
        with suppress(RuntimeError):
            self._pool.submit(connections.close_all)
        self._pool.shutdown(wait=False)
        done = threading.Event()
        threading.Thread(target=self._wait, args=(done,), daemon=True).start()
        done.wait(STOP_WITHIN_S)

    def _wait(self, done: threading.Event) -> None:
        self._pool.shutdown(wait=True)
        done.set()

    def _keep(self, receipt: Receipt) -> None:
        close_old_connections()
        try:
            receipts.keep(receipt)
        except Exception:
            logger.exception("a receipt could not be kept")
        finally:
            close_old_connections()
            with self._lock:
                self._waiting -= 1
