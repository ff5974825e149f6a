"""Areas that the store in Qdrant answers."""

from __future__ import annotations

from typing import Any

from engine.qdrant import server
from memory import secretbox
from memory.cases.registry import Case, CaseFile, adapter
from memory.stored_settings import QDRANT_FIELDS, normalise


@adapter("qdrant_config")
def qdrant_config(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The Qdrant settings read from a stored row."""
    chosen = normalise(case["input"]["stored"])
    found = {entry.api: getattr(chosen, entry.name) for entry in QDRANT_FIELDS}
    return found | {"apiKey": secretbox.open_sealed(chosen.qdrant_api_key) or None}


@adapter("qdrant_quantisation")
def qdrant_quantisation(case: Case, _file: CaseFile) -> dict[str, Any]:
    """What a collection is made with, and what its searches ask for."""
    asked = normalise({"qdrantQuantization": case["input"].get("quantization")})
    name = asked.qdrant_quantization
    made = server.quantization_of(name)
    return {
        "collection": made.model_dump(mode="json", exclude_none=True) if made else None,
        "search": {"quantization": server.search_quantization(name).model_dump(exclude_none=True)},
    }
