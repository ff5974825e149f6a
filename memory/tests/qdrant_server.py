"""A Qdrant double beside the product, and short ways to switch it on."""

from __future__ import annotations

from typing import Any

from engine.qdrant.server import load
from engine.testing.fake_qdrant import FakeQdrant
from engine.types import Mode
from memory import qdrant_store, wiring
from memory.principal import SYSTEM, Principal
from memory.services import embedding, settings
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.asking import contents

ALIAS = "omniroute_memory"


def switch_on(server: FakeQdrant, **changes: Any) -> None:
    """Point the settings at the double and turn the switch."""
    place = {"enabled": True, "host": "127.0.0.1", "port": server.port}
    settings.update_qdrant(SYSTEM, {**place, **changes})
    # The library is loaded beside a first search, which would go on without Qdrant.
    load()


def by_meaning(
    principal: Principal, query: str, **fields: Any
) -> tuple[list[str], str | None, list[tuple[str, str]]]:
    """Contents found by meaning, the store that answered, what did not and why."""
    view = retrieve(principal, RetrieveRequest(query, mode=Mode.VECTOR, **fields))
    degraded = [(item.tier, item.code) for item in view.retrieval.degraded]
    return contents(view), view.retrieval.vector_store, degraded


def local_name() -> str:
    """The name of the store of this machine."""
    index = embedding.active_index()
    assert index is not None
    return wiring.store_for(index).name


def payloads(server: FakeQdrant) -> dict[int, dict[str, Any]]:
    """Payloads of the points of the live collection by passage, without the marker."""
    name = server.shards.aliases[ALIAS]
    points = server.shards.collections[name].scroll({"limit": 10_000})["points"]
    return {point["id"]: point["payload"] for point in points if point["id"]}


def pass_pause() -> None:
    """Let the guard of this process forget the outage, as it does after its pause."""
    held = qdrant_store.connection(wiring.settings())
    held.guard.note(held.server.ping)
