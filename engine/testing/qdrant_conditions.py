"""Filters, search parameters and configurations of Qdrant's HTTP API, for Qdrant's own engine.

The engine's binding takes a Python bool for a number when it matches values. So every boolean of a
payload is stored as a number beside itself, and conditions on booleans ask for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import qdrant_edge as edge

Json: TypeAlias = "Mapping[str, Any]"
PointId: TypeAlias = "int | str | UUID"

AS_NUMBER: Final = "__as_number"
CONDITIONS: Final = ("must", "should", "must_not")
LARGEST: Final = 2**64 - 1


class Refused(Exception):
    """What the server answers instead: a status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def point_id(value: object) -> PointId:
    """A point's id: an unsigned number or a UUID. Raises ``Refused``."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
        return value
    if isinstance(value, str):
        try:
            return str(UUID(value))
        except ValueError:
            pass
    raise Refused(
        400,
        f"Format error in JSON body: value {value} is not a valid point ID, "
        "valid values are either an unsigned integer or a UUID",
    )


def stored(payload: Json | None) -> dict[str, Any]:
    """A payload as the engine keeps it."""
    given = dict(payload or {})
    numbers = {f"{name}{AS_NUMBER}": int(v) for name, v in given.items() if isinstance(v, bool)}
    return {**given, **numbers}


def shown(payload: Json | None) -> dict[str, Any] | None:
    """A payload as it was given."""
    if payload is None:
        return None
    return {name: value for name, value in payload.items() if not name.endswith(AS_NUMBER)}


def filter_of(value: Json | None) -> edge.Filter | None:
    """A filter. Raises ``Refused`` for what this double does not know."""
    if value is None:
        return None
    _known(value, CONDITIONS)
    made = {name: [_condition(one) for one in _listed(value.get(name))] for name in CONDITIONS}
    return edge.Filter(
        must=made["must"] or None,
        should=made["should"] or None,
        must_not=made["must_not"] or None,
    )


def _listed(value: object) -> Sequence[Json]:
    if value is None:
        return []
    return cast("Sequence[Json]", value if isinstance(value, list) else [value])


def _condition(value: Json) -> edge.ConditionType:
    if "has_id" in value:
        return edge.HasIdCondition({point_id(one) for one in value["has_id"]})
    if "is_empty" in value:
        return edge.IsEmptyCondition(value["is_empty"]["key"])
    if "key" in value:
        return _field(value)
    if value.keys() & set(CONDITIONS):
        return cast("edge.ConditionType", filter_of(value))
    raise Refused(400, "Format error in JSON body: data did not match any variant of Condition")


def _field(value: Json) -> edge.FieldCondition:
    given = {name: part for name, part in value.items() if part is not None}
    _known(given, ("key", "match", "range"))
    key = str(given["key"])
    if "range" in given:
        bounds = {name: edge_ for name, edge_ in given["range"].items() if edge_ is not None}
        return edge.FieldCondition(key, range=edge.RangeFloat(**bounds))
    match = given["match"]
    if "any" in match:
        return edge.FieldCondition(key, match=edge.MatchAny(list(match["any"])))
    if "except" in match:
        return edge.FieldCondition(key, match=edge.MatchExcept(list(match["except"])))
    wanted = match["value"]
    if isinstance(wanted, bool):
        return edge.FieldCondition(f"{key}{AS_NUMBER}", match=edge.MatchValue(int(wanted)))
    return edge.FieldCondition(key, match=edge.MatchValue(wanted))


def params_of(value: Json | None) -> edge.SearchParams | None:
    """Parameters of a search."""
    if value is None:
        return None
    asked = value.get("quantization")
    quantization = None
    if asked is not None:
        quantization = edge.QuantizationSearchParams(
            ignore=bool(asked.get("ignore")),
            rescore=asked.get("rescore"),
            oversampling=asked.get("oversampling"),
        )
    return edge.SearchParams(
        hnsw_ef=value.get("hnsw_ef"),
        exact=bool(value.get("exact")),
        quantization=quantization,
        indexed_only=bool(value.get("indexed_only")),
    )


def config_of(value: Json) -> edge.EdgeConfig:
    """The configuration of a new collection. Raises ``Refused``."""
    vectors = value.get("vectors")
    if not isinstance(vectors, dict) or "size" not in vectors:
        raise Refused(400, "Format error in JSON body: missing field `size`")
    if not 1 <= vectors["size"] <= 65_536:
        raise Refused(422, "Validation error in JSON body: [vectors.size: value out of range]")
    graph = value.get("hnsw_config") or {}
    return edge.EdgeConfig(
        vectors=edge.EdgeVectorParams(
            size=vectors["size"], distance=getattr(edge.Distance, vectors["distance"])
        ),
        hnsw_config=edge.HnswIndexConfig(
            m=graph.get("m", 16),
            ef_construct=graph.get("ef_construct", 100),
            full_scan_threshold=graph.get("full_scan_threshold", 10_000),
        ),
        quantization_config=_quantization(value.get("quantization_config")),
    )


def _quantization(value: Json | None) -> edge.QuantizationConfigType | None:
    if value is None:
        return None
    if "scalar" in value:
        scalar = value["scalar"]
        return edge.ScalarQuantizationConfig(
            type=edge.ScalarType.Int8,
            quantile=scalar.get("quantile"),
            always_ram=scalar.get("always_ram"),
        )
    if "binary" in value:
        return edge.BinaryQuantizationConfig(always_ram=value["binary"].get("always_ram"))
    raise Refused(400, "Format error in JSON body: unknown quantization")


Schema: TypeAlias = "edge.PayloadSchemaType | edge.PayloadSchemaParams"


def _keyword(value: Json) -> Schema:
    return edge.KeywordIndexParams(is_tenant=value.get("is_tenant"))


def _integer(value: Json) -> Schema:
    return edge.IntegerIndexParams(lookup=value.get("lookup"), range=value.get("range"))


def _bool(_value: Json) -> Schema:
    # The condition asks for the number beside the boolean.
    return edge.IntegerIndexParams(lookup=True, range=False)


SCHEMAS: Final[Mapping[str, Callable[[Json], Schema]]] = {
    "keyword": _keyword,
    "integer": _integer,
    "bool": _bool,
}


def schema_of(value: object) -> tuple[str, Schema]:
    """The type of a payload index, and how the engine makes it. Raises ``Refused``."""
    params: Json = {"type": value} if isinstance(value, str) else cast("Json", value)
    name = str(params.get("type"))
    if name not in SCHEMAS:
        raise Refused(400, f"Format error in JSON body: unknown variant `{name}`")
    return name, SCHEMAS[name](params)


def _known(value: Json, names: Sequence[str]) -> None:
    strange = [name for name, part in value.items() if part is not None and name not in names]
    if strange:
        raise Refused(400, f"Format error in JSON body: unknown field `{strange[0]}`")
