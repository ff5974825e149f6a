"""The calls to a Qdrant server that the product makes, through the official client.

The client's library takes a second to import: it is loaded by the first call, or by ``load``.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from engine.net.client import HttpClient, Limits
from engine.net.errors import UrlBlocked
from engine.qdrant.errors import QdrantFailed
from engine.qdrant.filters import INDEXES, Filter
from engine.qdrant.place import Place
from engine.qdrant.rows import Row
from engine.types import Vector

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

Answer = TypeVar("Answer")

QUICK: Final = Limits(connect_s=1.0, total_s=2.0, retries=0)
"""A search waits no longer for a server that is down or slow."""
PATIENT: Final = Limits(connect_s=3.0, total_s=20.0, retries=0)
"""A job that mirrors waits this long for one batch; other jobs wait behind it."""
MARKER: Final = 0
"""Point that is no passage: it tells how far the collection follows the log."""
TRIAL_DIM: Final = 4
EFFORT: Final = 128
EFFORT_BUILD: Final = 128
OVERSAMPLING: Final = {"none": None, "int8": 2.0, "binary": 4.0}


@dataclass(frozen=True, slots=True)
class Found:
    """A point that a search brought."""

    passage: int
    score: float
    text_hash: str


@dataclass(frozen=True, slots=True)
class Search:
    """One search of a collection."""

    collection: str
    vector: Vector
    scope: Filter
    limit: int
    quantization: str = "none"


def is_loaded() -> bool:
    """Whether the client's library is in memory."""
    return "qdrant_client" in sys.modules and hasattr(sys.modules["qdrant_client"], "QdrantClient")


def load() -> None:
    """Import the client's library. Raises ``QdrantFailed`` where it is not installed."""
    try:
        import qdrant_client  # noqa: F401
    except ImportError as error:
        raise QdrantFailed(
            "The package qdrant-client is missing.", code="qdrant_not_installed"
        ) from error


class QdrantServer:
    """A server at a place. Thread-safe. Every call raises ``QdrantFailed``."""

    def __init__(
        self, place: Place, http: HttpClient, *, quick: Limits = QUICK, patient: Limits = PATIENT
    ) -> None:
        self.place = place
        self._http = http
        self._limits = (quick, patient)

    def search(self, asked: Search) -> list[Found]:
        """Nearest points of a filter, best first. Bounded by the quick limits."""
        from qdrant_client import models

        quantization = search_quantization(asked.quantization)

        def step() -> list[Found]:
            answer = self._quick.query_points(
                asked.collection,
                query=asked.vector.tolist(),
                query_filter=models.Filter.model_validate(asked.scope),
                limit=asked.limit,
                search_params=models.SearchParams(hnsw_ef=EFFORT, quantization=quantization),
                with_payload=["text_hash"],
            )
            return [
                Found(_number(one.id), one.score, str((one.payload or {}).get("text_hash", "")))
                for one in answer.points
            ]

        try:
            return _asked(step)
        except QdrantFailed as error:
            if error.code != "qdrant_unreachable":
                raise
        # A connection that was kept open may have been closed meanwhile.
        return _asked(step)

    def ping(self) -> None:
        """Ask the server for something that needs the key, within the quick limits."""
        _asked(lambda: self._quick.get_aliases())

    def try_out(self) -> None:
        """Make a small collection, store a point, find it, remove the collection: all of it real.

        For a server that holds nothing of ours yet.
        """
        self.ping()
        name = f"{self.place.alias}_probe_{secrets.token_hex(4)}"
        vector = np.eye(1, TRIAL_DIM, dtype=np.float32)[0]
        self.create(name, dim=TRIAL_DIM, quantization="none")
        try:
            self._store(name, [1], [{}], [vector])
            found = self.search(Search(name, vector, {}, 1))
        finally:
            self.drop(name)
        if [one.passage for one in found] != [1]:
            raise QdrantFailed("A point was stored but not found.", code="qdrant_invalid")

    def points(self, collection: str) -> int | None:
        """How many passages a collection holds; None when it is not there."""
        try:
            return max(0, _asked(lambda: self._quick.count(collection, exact=True)).count - 1)
        except QdrantFailed as error:
            if error.code == "qdrant_missing":
                return None
            raise

    def exists(self, collection: str) -> bool:
        """Whether a collection is there."""
        return _asked(lambda: self._patient.collection_exists(collection))

    def names(self) -> list[str]:
        """Every collection of the server."""
        found = _asked(lambda: self._patient.get_collections())
        return [one.name for one in found.collections]

    def create(
        self, collection: str, *, dim: int, quantization: str, effort: int = EFFORT_BUILD
    ) -> None:
        """Make a collection with the indexes that filters need."""
        from qdrant_client import models

        _asked(
            lambda: self._patient.create_collection(
                collection,
                vectors_config=models.VectorParams(size=dim, distance=models.Distance.COSINE),
                hnsw_config=models.HnswConfigDiff(ef_construct=effort),
                quantization_config=quantization_of(quantization),
            )
        )
        for name, schema in INDEXES.items():
            self._index(collection, name, schema)

    def drop(self, collection: str) -> None:
        """Remove a collection; one that is not there is fine."""
        _asked(lambda: self._patient.delete_collection(collection))

    def switch(self, collection: str) -> None:
        """Let the alias of the place name a collection, in one step."""
        from qdrant_client import models

        alias = self.place.alias
        steps: list[models.AliasOperations] = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)),
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=collection, alias_name=alias)
            ),
        ]
        _asked(lambda: self._patient.update_collection_aliases(change_aliases_operations=steps))

    def alias_target(self) -> str | None:
        """The collection that the alias of the place names."""
        found = _asked(lambda: self._patient.get_aliases())
        names = (one.collection_name for one in found.aliases if self._is_ours(one.alias_name))
        return next(names, None)

    def upsert(self, collection: str, rows: Sequence[Row], vectors: Sequence[Vector]) -> None:
        """Store points and wait until they can be searched."""
        if rows:
            ids = [row.passage for row in rows]
            payloads = [dict(row.payload) for row in rows]
            self._store(collection, ids, payloads, vectors)

    def mark(self, collection: str, position: int, dim: int) -> None:
        """Write into the collection how far it follows the log."""
        # No scope sees what is archived.
        payload = {"is_archived": True, "kind": "memory-studio", "position": position}
        self._store(collection, [MARKER], [payload], [np.eye(1, dim, dtype=np.float32)[0]])

    def marked(self, collection: str) -> int | None:
        """How far the collection says that it follows; None when it does not say so."""
        found = _asked(lambda: self._patient.retrieve(collection, [MARKER], with_payload=True))
        position = (found[0].payload or {}).get("position") if found else None
        return position if isinstance(position, int) else None

    def delete(self, collection: str, passages: Collection[int]) -> None:
        """Delete points; unknown ones are fine."""
        if passages:
            chosen: list[Any] = list(passages)
            _asked(lambda: self._patient.delete(collection, points_selector=chosen, wait=True))

    def delete_where(self, collection: str, chosen: Filter) -> int:
        """Delete the points of a filter; how many there were."""
        from qdrant_client import models

        found = models.Filter.model_validate(chosen)
        count = _asked(lambda: self._patient.count(collection, count_filter=found, exact=True))
        selector = models.FilterSelector(filter=found)
        _asked(lambda: self._patient.delete(collection, points_selector=selector, wait=True))
        return count.count

    def ids(self, collection: str, first: int, size: int) -> list[int]:
        """Passages from an id on, in order."""
        found, _following = _asked(
            lambda: self._patient.scroll(
                collection, offset=first, limit=size, with_payload=False, with_vectors=False
            )
        )
        return [_number(one.id) for one in found]

    @cached_property
    def _quick(self) -> QdrantClient:
        return self._client(self._limits[0])

    @cached_property
    def _patient(self) -> QdrantClient:
        return self._client(self._limits[1])

    def _client(self, limits: Limits) -> QdrantClient:
        load()
        from qdrant_client import QdrantClient

        from engine.qdrant.transport import PolicyTransport

        # The key as a header: the client's own parameter warns of plain HTTP on every start.
        headers = {"api-key": self.place.api_key} if self.place.api_key else None
        return QdrantClient(
            url=self.place.url,
            prefer_grpc=False,
            check_compatibility=False,
            headers=headers,
            transport=PolicyTransport(self._http, limits),
            trust_env=False,
        )

    def _store(
        self,
        collection: str,
        ids: Sequence[int],
        payloads: Sequence[dict[str, object]],
        vectors: Sequence[Vector],
    ) -> None:
        from qdrant_client import models

        points = [
            models.PointStruct(id=key, payload=payload, vector=vector.tolist())
            for key, payload, vector in zip(ids, payloads, vectors, strict=True)
        ]
        _asked(lambda: self._patient.upsert(collection, points=points, wait=True))

    def _index(self, collection: str, name: str, schema: Mapping[str, object]) -> None:
        from qdrant_client import models

        kinds: dict[object, type[Any]] = {
            "keyword": models.KeywordIndexParams,
            "integer": models.IntegerIndexParams,
            "bool": models.BoolIndexParams,
        }
        params = kinds[schema["type"]].model_validate(schema)
        _asked(lambda: self._patient.create_payload_index(collection, name, params, wait=True))

    def _is_ours(self, alias: str) -> bool:
        return alias == self.place.alias


def search_quantization(name: str) -> models.QuantizationSearchParams:
    """How a search deals with quantised vectors: whole ones decide among more than asked for."""
    from qdrant_client import models

    return models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING[name])


def quantization_of(name: str) -> models.ScalarQuantization | models.BinaryQuantization | None:
    """How a collection quantises its vectors."""
    from qdrant_client import models

    if name == "int8":
        scalar = models.ScalarQuantizationConfig(
            type=models.ScalarType.INT8, quantile=0.99, always_ram=True
        )
        return models.ScalarQuantization(scalar=scalar)
    if name == "binary":
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
    return None


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise QdrantFailed("A point of another system is in the collection.", code="qdrant_invalid")
    return value


CODES: Final = {
    "timeout": "qdrant_timeout",
    "connect_failed": "qdrant_unreachable",
    "tls_failed": "qdrant_unreachable",
    "proxy_refused": "qdrant_unreachable",
    "url_blocked": "qdrant_blocked",
    "auth_failed": "qdrant_auth",
}
STATUSES: Final = {
    401: ("qdrant_auth", "Qdrant refuses the key, or there is none."),
    403: ("qdrant_auth", "Qdrant refuses the key, or there is none."),
    404: ("qdrant_missing", "The collection is not there."),
    409: ("qdrant_name_taken", "The name is taken by something else."),
    429: ("qdrant_busy", "Qdrant asks to slow down."),
}


def _asked(step: Callable[[], Answer]) -> Answer:
    """Carry out a call; every failure of the client as ``QdrantFailed``."""
    load()
    from pydantic import ValidationError
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    try:
        return step()
    except ResponseHandlingException as error:
        raise _no_answer(error.source) from error
    except UnexpectedResponse as error:
        raise _refusal(error.status_code or 0) from error
    except QdrantException as error:
        raise _refusal(429) from error
    except (ValidationError, ValueError) as error:
        message = "Qdrant sent an answer that cannot be used."
        raise QdrantFailed(message, code="qdrant_invalid") from error


def _no_answer(source: Exception) -> QdrantFailed:
    if isinstance(source, UrlBlocked) and source.reason == "dns_failed":
        return QdrantFailed("The name of the host is not known.", code="qdrant_unreachable")
    code = CODES.get(str(getattr(source, "code", "")), "qdrant_invalid")
    message = str(source) if code != "qdrant_invalid" else "Qdrant's answer cannot be used."
    return QdrantFailed(message, code=code)


def _refusal(status: int) -> QdrantFailed:
    if status in STATUSES:
        code, message = STATUSES[status]
        return QdrantFailed(message, code=code)
    if status >= 500:
        return QdrantFailed(f"Qdrant failed with status {status}.", code="qdrant_error")
    return QdrantFailed(f"Qdrant refused with status {status}.", code="qdrant_refused")
