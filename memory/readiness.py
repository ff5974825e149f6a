"""Waiting a little for what takes its time to load, and no longer: it loads in its own thread."""

from __future__ import annotations

import threading
from typing import Final, Protocol, cast

from django.db import connection

from engine.protocols import VectorStore
from engine.types import Health

_lock: Final = threading.Lock()
_loading: dict[int, threading.Thread] = {}


class Loadable(Protocol):
    """What takes its time to load, such as a model or an index, and is loaded by asking."""

    @property
    def is_loaded(self) -> bool:
        """Whether asking costs no loading."""
        ...

    def health(self) -> Health:
        """Load, and say how that went."""
        ...


def is_ready(source: Loadable, *, wait_s: float) -> bool:
    """Whether a source or store can be asked now; False while it is still being loaded.

    Starts the loading in a thread of its own and waits a little for it. A loading that failed
    counts as ready: asking tells why.
    """
    if source.is_loaded:
        return True
    with _lock:
        thread = _loading.get(id(source))
        if thread is None or not thread.is_alive():
            thread = threading.Thread(
                target=_load, args=(source,), name="model-loading", daemon=True
            )
            _loading[id(source)] = thread
            thread.start()
    thread.join(wait_s)
    return not thread.is_alive()


def is_store_ready(store: VectorStore, *, wait_s: float) -> bool:
    """The same for a vector store; one that has nothing to load always is."""
    is_loadable = hasattr(store, "is_loaded")
    return not is_loadable or is_ready(cast(Loadable, store), wait_s=wait_s)


def _load(source: Loadable) -> None:
    try:
        source.health()
    finally:
        # A store reads the database through a connection of this thread.
        connection.close()
