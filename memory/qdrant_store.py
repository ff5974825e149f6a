"""The settings of Qdrant to engine objects; what a process holds open to a server.

One connection and one guard for each place: an outage that one search met spares all others.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import EngineError
from memory import secretbox, wiring
from memory.model_facts import entry_of
from memory.models import Vault, VectorIndex
from memory.stored_settings import Settings

if TYPE_CHECKING:
    from engine.protocols import VectorStore
    from engine.qdrant.guard import Guard
    from engine.qdrant.mirror import Mirror
    from engine.qdrant.place import Place
    from engine.qdrant.server import QdrantServer
    from engine.qdrant.store import QdrantStore

_lock = threading.Lock()
_connections: dict[Place, Connection] = {}
_mirrors: dict[tuple[Place, int, str, int], Mirror] = {}


@dataclass(frozen=True, slots=True)
class Connection:
    """A server, and what is known of its health in this process."""

    server: QdrantServer
    guard: Guard


def is_on(chosen: Settings) -> bool:
    """Whether searches go to Qdrant."""
    return chosen.qdrant_enabled and chosen.vector_store == "qdrant" and bool(chosen.qdrant_host)


def place(chosen: Settings) -> Place:
    """Where the settings say Qdrant is. Raises ``EngineError`` where that cannot be."""
    from engine.qdrant.place import place_of

    return place_of(
        chosen.qdrant_host,
        chosen.qdrant_port,
        chosen.qdrant_collection,
        secretbox.open_sealed(chosen.qdrant_api_key),
    )


def connection(chosen: Settings) -> Connection:
    """The connection to that place; opened once in a process. Raises ``EngineError``."""
    from engine.qdrant.guard import Guard
    from engine.qdrant.server import QdrantServer

    wanted = place(chosen)
    with _lock:
        if wanted not in _connections:
            server = QdrantServer(wanted, wiring.http_client())
            _connections[wanted] = Connection(server, Guard(server.ping))
        return _connections[wanted]


def mirror(row: VectorIndex, chosen: Settings) -> Mirror:
    """The mirror of an index. Raises ``EngineError``."""
    server, quantization = connection(chosen).server, chosen.qdrant_quantization
    key = (server.place, row.pk, quantization, chosen.qdrant_ef_construct)
    with _lock:
        if key not in _mirrors:
            _mirrors[key] = _mirror(row, server, chosen)
        return _mirrors[key]


def _mirror(row: VectorIndex, server: QdrantServer, chosen: Settings) -> Mirror:
    from engine.embed import means
    from engine.qdrant.mirror import Mirror, Mirrored

    entry = entry_of(row)
    is_centred = entry is not None and entry.is_centred
    what = Mirrored(
        index_id=row.pk,
        signature=wiring.store_for(row).signature,
        quantization=chosen.qdrant_quantization,
        effort=chosen.qdrant_ef_construct,
        centred=is_centred,
        means=means.packaged(entry) if entry is not None else {},
        kept=_device_only,
    )
    return Mirror(wiring.connect, server, what)


def _device_only() -> list[int]:
    """The vaults of which nothing leaves this machine, wherever Qdrant is."""
    rows = Vault.objects.filter(is_sealed=False, is_device_only=True).order_by()
    return list(rows.values_list("pk", flat=True))


def store(row: VectorIndex, chosen: Settings) -> QdrantStore:
    """The store that searches Qdrant for an index. Raises ``EngineError``."""
    from engine.qdrant.store import QdrantStore

    held = connection(chosen)
    return QdrantStore(wiring.store_for(row), mirror(row, chosen), held.server, held.guard)


def stores(row: VectorIndex, chosen: Settings) -> tuple[VectorStore, ...]:
    """What searches of an index ask, in order: Qdrant where it is on, then the store here."""
    local = wiring.store_for(row)
    if not is_on(chosen):
        return (local,)
    try:
        return (store(row, chosen), local)
    except EngineError:
        # An address that may not be called: the engine page says so.
        return (local,)


def ensure() -> None:
    """Create the table of the collections."""
    from engine.qdrant.states import States

    States(wiring.connect, "").ensure()


def reset() -> None:
    """Let go of every connection (tests, and with the rest of the wiring)."""
    with _lock:
        _connections.clear()
        _mirrors.clear()
