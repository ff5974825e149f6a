"""Collections and aliases of the Qdrant double: Qdrant's own engine, one shard for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Final, TypeAlias

import qdrant_edge as edge

from engine.testing.qdrant_conditions import (
    AS_NUMBER,
    Json,
    Refused,
    config_of,
    filter_of,
    params_of,
    point_id,
    schema_of,
    shown,
    stored,
)

Found: TypeAlias = "dict[str, Any]"
DEFAULT_LIMIT: Final = 10


@dataclass
class Collection:
    """One collection: its engine, what it was made with, the types of its payload indexes."""

    name: str
    shard: edge.EdgeShard
    config: Json
    schema: dict[str, str] = field(default_factory=dict)

    def query(self, body: Json) -> Found:
        """``points/query`` for one dense vector."""
        vector = body.get("query")
        if isinstance(vector, Mapping):
            vector = vector.get("nearest")
        if not isinstance(vector, Sequence):
            raise Refused(400, "Format error in JSON body: a vector is needed")
        request = edge.QueryRequest(
            limit=body.get("limit") or DEFAULT_LIMIT,
            offset=body.get("offset"),
            query=edge.Query.Nearest([float(one) for one in vector]),
            filter=filter_of(body.get("filter")),
            score_threshold=body.get("score_threshold"),
            params=params_of(body.get("params")),
            with_payload=True,
            with_vector=bool(body.get("with_vector")),
        )
        found = engine(lambda: self.shard.query(request))
        points = [
            {
                "id": one.id,
                "version": one.version,
                "score": one.score,
                **_shown(one.payload, one.vector, body, payload_default=False),
            }
            for one in found
        ]
        return {"points": points}

    def scroll(self, body: Json) -> Found:
        """``points/scroll``, in the order of ids."""
        request = edge.ScrollRequest(
            offset=point_id(body["offset"]) if body.get("offset") is not None else None,
            limit=body.get("limit") or DEFAULT_LIMIT,
            filter=filter_of(body.get("filter")),
            with_payload=True,
            with_vector=bool(body.get("with_vector")),
        )
        records, following = engine(lambda: self.shard.scroll(request))
        return {
            "points": [
                {"id": one.id, **_shown(one.payload, one.vector, body, payload_default=True)}
                for one in records
            ],
            "next_page_offset": following if following is None else point_id(following),
        }

    def retrieve(self, body: Json) -> list[Found]:
        """Points by their ids."""
        ids = [point_id(one) for one in body["ids"]]
        records = engine(lambda: self.shard.retrieve(ids, True, bool(body.get("with_vector"))))
        return [
            {"id": one.id, **_shown(one.payload, one.vector, body, payload_default=True)}
            for one in records
        ]

    def count(self, body: Json) -> Found:
        """``points/count``."""
        request = edge.CountRequest(
            exact=bool(body.get("exact", True)), filter=filter_of(body.get("filter"))
        )
        return {"count": engine(lambda: self.shard.count(request))}

    def info(self) -> Found:
        """What ``GET /collections/{name}`` tells."""
        state = self.shard.info()
        return {
            "status": "green",
            "optimizer_status": "ok",
            "indexed_vectors_count": state.indexed_vectors_count,
            "points_count": state.points_count,
            "segments_count": state.segments_count,
            "config": {
                "params": {
                    "vectors": self.config["vectors"],
                    "shard_number": 1,
                    "replication_factor": 1,
                    "write_consistency_factor": 1,
                    "on_disk_payload": True,
                },
                "hnsw_config": {
                    "m": 16,
                    "ef_construct": 100,
                    "full_scan_threshold": 10_000,
                    **(self.config.get("hnsw_config") or {}),
                },
                "optimizer_config": {
                    "deleted_threshold": 0.2,
                    "vacuum_min_vector_number": 1000,
                    "default_segment_number": 0,
                    "flush_interval_sec": 5,
                },
                "quantization_config": self.config.get("quantization_config"),
            },
            "payload_schema": {
                name: {"data_type": kind, "points": state.points_count}
                for name, kind in self.schema.items()
            },
        }

    def upsert(self, body: Json) -> None:
        """Store points, each replacing what its id held."""
        points = [
            edge.Point(point_id(one["id"]), one["vector"], stored(one.get("payload")))
            for one in body["points"]
        ]
        engine(lambda: self.shard.update(edge.UpdateOperation.upsert_points(points)))

    def delete(self, body: Json) -> None:
        """Delete points by ids or by a filter."""
        if "points" in body:
            ids = [point_id(one) for one in body["points"]]
            operation = edge.UpdateOperation.delete_points(ids)
        else:
            chosen = filter_of(body["filter"]) or edge.Filter()
            operation = edge.UpdateOperation.delete_points_by_filter(chosen)
        engine(lambda: self.shard.update(operation))

    def index(self, body: Json) -> None:
        """Make a payload index."""
        name = body["field_name"]
        kind, schema = schema_of(body["field_schema"])
        stored_name = f"{name}{AS_NUMBER}" if kind == "bool" else name
        operation = edge.UpdateOperation.create_field_index(stored_name, schema)
        engine(lambda: self.shard.update(operation))
        self.schema[name] = kind


def engine(step: Callable[[], Any]) -> Any:
    """Let the engine work; its refusals as the server tells them."""
    try:
        return step()
    except Exception as error:  # the binding raises plain exceptions
        raise Refused(400, f"Wrong input: {error}") from error


def _shown(payload: Json | None, vector: Any, body: Json, *, payload_default: bool) -> Found:
    wanted = body.get("with_payload")
    wanted = payload_default if wanted is None else wanted
    found: Found = {}
    if wanted is not False:
        kept = shown(payload) or {}
        if isinstance(wanted, list):
            kept = {name: value for name, value in kept.items() if name in wanted}
        found["payload"] = kept
    if body.get("with_vector"):
        found["vector"] = vector
    return found


class Shards:
    """Every collection and alias. Updates are applied one after the other, as in the server.

    While ``is_held`` nothing is applied: what was sent without waiting stays unseen.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self.collections: dict[str, Collection] = {}
        self.aliases: dict[str, str] = {}
        self._made = 0
        self._updates: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._go = Event()
        self._go.set()
        self._thread = Thread(target=self._apply, name="qdrant-updates", daemon=True)
        self._thread.start()

    def hold(self) -> None:
        """Apply no update from now on."""
        self._go.clear()

    def release(self) -> None:
        """Apply updates again."""
        self._go.set()

    def close(self) -> None:
        """End the thread, close every shard."""
        self._updates.put(None)
        self._go.set()
        self._thread.join()
        for one in self.collections.values():
            one.shard.close()

    def of(self, name: str) -> Collection:
        """A collection by its name or an alias. Raises ``Refused``."""
        found = self.collections.get(self.aliases.get(name, name))
        if found is None:
            raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")
        return found

    def create(self, name: str, body: Json) -> None:
        """Make a collection. Raises ``Refused``."""
        with self._lock:
            if name in self.collections:
                raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
            if name in self.aliases:
                raise Refused(400, f"Wrong input: Alias `{name}` already exists!")
            config = config_of(body)
            self._made += 1
            path = self._folder / str(self._made)
            path.mkdir()
            shard = edge.EdgeShard.create(str(path), config)
            self.collections[name] = Collection(name, shard, body)

    def drop(self, name: str) -> bool:
        """Remove a collection and its aliases; whether it was there."""
        with self._lock:
            found = self.collections.pop(name, None)
            if found is None:
                return False
            self.aliases = {a: c for a, c in self.aliases.items() if c != name}
            found.shard.close()
            return True

    def change_aliases(self, actions: Sequence[Json]) -> None:
        """All of the actions or none. Raises ``Refused``."""
        with self._lock:
            aliases = dict(self.aliases)
            for action in actions:
                self._change_alias(aliases, action)
            self.aliases = aliases

    def _change_alias(self, aliases: dict[str, str], action: Json) -> None:
        if "create_alias" in action:
            wanted = action["create_alias"]
            name, target = wanted["alias_name"], wanted["collection_name"]
            if target not in self.collections:
                raise Refused(404, f"Not found: Collection `{target}` doesn't exist!")
            if name in self.collections:
                raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
            aliases[name] = target
        else:
            # Deleting an alias that is not there succeeds.
            aliases.pop(action["delete_alias"]["alias_name"], None)

    def update(self, step: Callable[[], None], *, wait: bool) -> str:
        """Apply an update after those before it; ``completed``, or ``acknowledged`` at once."""
        if not wait:
            self._updates.put(step)
            return "acknowledged"
        done = Event()
        failure: list[Refused] = []

        def settled() -> None:
            try:
                step()
            except Refused as error:
                failure.append(error)
            finally:
                done.set()

        self._updates.put(settled)
        done.wait()
        if failure:
            raise failure[0]
        return "completed"

    def _apply(self) -> None:
        while (step := self._updates.get()) is not None:
            self._go.wait()
            try:
                step()
            except Refused:
                # Nobody waits for it: the server writes it into its log.
                continue
