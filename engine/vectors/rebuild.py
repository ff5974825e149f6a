"""The thread that arranges the index while searches go on over the old state."""

from __future__ import annotations

import atexit
import os
import sys
import time
import uuid
import weakref
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread, get_native_id
from typing import Final

from engine.vectors.arrange import Stop, Tuning, arranged
from engine.vectors.base import Base, Words
from engine.vectors.files import IndexFiles
from engine.vectors.state import Rebuilt, State
from engine.vectors.view import View

RETRY_S: Final = 10.0
"""Wait after another process held the right to build."""
FAILED_S: Final = 120.0
"""Wait after a failure: a full disk is not asked every second."""
LEAVE_S: Final = 5.0
NICENESS: Final = 10


class Rebuilder:
    """Makes one new base at a time. Calls come under the lock of the index."""

    def __init__(self, tuning: Tuning, files: IndexFiles | None) -> None:
        self._tuning = tuning
        self._files = files
        self._thread: Thread | None = None
        self._result: Rebuilt | None = None
        self._not_before = 0.0
        self._stop = Event()
        self.failure = ""
        _alive.add(self)

    @property
    def is_busy(self) -> bool:
        """Whether a base is being made, or waits to be taken."""
        thread = self._thread
        return self._result is not None or (thread is not None and thread.is_alive())

    @property
    def is_ready(self) -> bool:
        """Whether ``begin`` may be called now."""
        return not self.is_busy and time.monotonic() >= self._not_before

    def begin(self, state: State, *, anew: bool = False) -> None:
        """Start over the rows as they are now; nothing of them may be unsettled.

        ``anew``: no graph is grown, since a graph keeps the vectors of dead rows.
        """
        # The words go on growing; the thread works with those of now.
        view = replace(state.view(), words=state.words.copy())
        if anew:
            view = replace(view, base=replace(view.base, graphs={}))
        state.touched.clear()
        self._stop = Event()
        self._thread = Thread(
            target=self._run,
            args=(state, view, state.seen, self._stop),
            name="vector-index",
            daemon=True,
        )
        self._thread.start()

    def take(self) -> Rebuilt | None:
        """What is ready, once."""
        result, self._result = self._result, None
        return result

    def wait(self, timeout_s: float) -> None:
        """Wait until the thread is done."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)

    def stop(self) -> None:
        """Have the thread end soon. Native code must not run while the interpreter goes down."""
        self._stop.set()
        self.wait(LEAVE_S)

    def _run(self, state: State, view: View, position: int, stop: Event) -> None:
        _give_way()
        try:
            base = self._make(view, position, stop)
        except Stop:
            return
        except Exception as error:  # whatever it is, the old state goes on serving
            self.failure = f"The index could not be arranged ({type(error).__name__})."
            self._not_before = time.monotonic() + FAILED_S
            return
        self.failure = ""
        if base is None:
            self._not_before = time.monotonic() + RETRY_S
        else:
            self._result = Rebuilt(base, state, view.centres, len(view.tail))

    def _make(self, view: View, position: int, stop: Event) -> Base | None:
        """The new base; None while another process makes one for all."""
        if self._files is None:
            return arranged(view, self._tuning, target=None, stopped=stop.is_set)
        with self._files.building() as is_ours:
            if not is_ours:
                return None
            token = uuid.uuid4().hex
            with self._files.draft(token) as draft:
                base = arranged(view, self._tuning, target=draft, stopped=stop.is_set)
                base = replace(base, position=position, token=token)
                self._files.write(draft, base, view.words)
            return self._mapped(base, view.words)

    def _mapped(self, base: Base, words: Words) -> Base:
        """The same base, out of its files: its memory can be let go of."""
        found = self._files.read(base.token) if self._files is not None else None
        if found is None:
            return base
        mapped = found[0]
        return replace(mapped, rows=replace(mapped.rows, spread=base.rows.spread))


def _give_way() -> None:
    """Let the calling thread have what the threads that serve leave over, where that can be said.

    On Linux a thread has a priority of its own; elsewhere the number would mean another process.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), NICENESS)


_alive: weakref.WeakSet[Rebuilder] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for rebuilder in list(_alive):
        rebuilder.stop()
