"""What a text in a setting can be."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

MAX_URL: Final = 2048
_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/\-]{0,99}")


def is_endpoint(text: str) -> bool:
    """Whether a text is a base URL: http(s), a host, no credentials, query or fragment."""
    if len(text) > MAX_URL or any(mark in text for mark in "?#\\") or not text.isprintable():
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    has_place = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    return has_place and "@" not in parts.netloc


def is_model_name(text: str) -> bool:
    """Whether a text can be the name of a local model: letters, digits and ``. _ - /``."""
    return bool(_MODEL_NAME.fullmatch(text)) and ".." not in text
