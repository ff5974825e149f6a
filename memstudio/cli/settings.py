"""Settings as arguments of commands: NAME=VALUE."""

from __future__ import annotations

import json
from typing import Any

from memstudio.cli.api import USAGE, Refused


def change(text: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE``; the value is JSON, or a text. Raises ``Refused``."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise Refused(USAGE, {"code": "usage", "message": f"{text} is not NAME=VALUE."})
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
