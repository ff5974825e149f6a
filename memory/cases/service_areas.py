"""Areas that services and the API's shapes answer."""

from __future__ import annotations

import math
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from memory.api.schemas.engine import PreviewIn, ReindexIn, SummarizeIn
from memory.api.schemas.memories import MemoryCreate, MemoryUpdate
from memory.api.schemas.qdrant import QdrantSearchIn, QdrantSettingsIn
from memory.api.schemas.settings import MemorySettingsIn
from memory.cases.registry import Case, CaseFile, adapter
from memory.services import access, settings
from memory.services.drafts import parse_metadata
from memory.stored_settings import normalise
from memory.type_names import current_type

_ROUTES: Final[dict[str, type[BaseModel]]] = {
    "POST /api/memory": MemoryCreate,
    "PUT /api/memory/{id}": MemoryUpdate,
    "POST /api/memory/retrieve-preview": PreviewIn,
    "POST /api/memory/reindex": ReindexIn,
    "POST /api/memory/summarize": SummarizeIn,
    "PUT /api/settings/memory": MemorySettingsIn,
    "PUT /api/settings/qdrant": QdrantSettingsIn,
    "POST /api/settings/qdrant/search": QdrantSearchIn,
}
_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@adapter("schema")
def schema(case: Case, _file: CaseFile) -> dict[str, Any]:
    """Whether a route's own shape accepts a body, and the values it then has."""
    shape = _ROUTES[case["input"]["route"]]
    try:
        value = shape.model_validate(case["input"]["body"])
    except ValidationError:
        return {"ok": False}
    return {"ok": True, **value.model_dump(by_alias=True)}


@adapter("settings_normalise")
def settings_normalise(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The settings read from a stored row; a bare number stands for the token budget."""
    stored = case["input"]["stored"]
    if isinstance(stored, str):
        stored = {"memoryMaxTokens": _NUMBERS[stored]}
    return settings.as_json(normalise(stored))


@adapter("metadata_parse")
def metadata_parse(case: Case, _file: CaseFile) -> dict[str, Any]:
    """Metadata of stored text."""
    return parse_metadata(case["input"]["raw"])


@adapter("cli_type")
def cli_type(case: Case, _file: CaseFile) -> dict[str, str]:
    """The type that the command line sends, and whether it warns."""
    sent, warning = current_type(case["input"]["type"])
    return {"sent": sent, "stderr": "deprecation warning" if warning else ""}


@adapter("owner")
def owner(case: Case, _file: CaseFile) -> str | None:
    """The owner a client names."""
    info = case["input"]["apiKeyInfo"]
    return access.reference_of(info.get("id") if isinstance(info, dict) else None)
