"""The OpenAPI document of the REST API as it is kept in the repository."""

from __future__ import annotations

import json
from pathlib import Path

from django.conf import settings

from memory.api import api


def path() -> Path:
    """Where it is kept."""
    return Path(settings.BASE_DIR) / "docs" / "openapi.json"


def text() -> str:
    """What the code says now, in a fixed order so that changes are seen line by line."""
    document = api.get_openapi_schema(path_prefix="/api/")
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def is_current(wanted: str) -> bool:
    """Whether the file says the same."""
    return path().exists() and path().read_text(encoding="utf-8") == wanted
