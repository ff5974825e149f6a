"""Reads tensors of a safetensors file: a length, a JSON header, then the raw values.

The header gives each tensor's type, shape and place; https://huggingface.co/docs/safetensors has
the format. The values are mapped, not copied.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import EmbeddingFailed

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "|i1"}
MAX_HEADER = 1 << 24

Array = npt.NDArray[np.generic]


def read(path: Path) -> dict[str, Array]:
    """Every tensor by name. Raises ``EmbeddingFailed`` (``model_load_failed``) when it is none."""
    try:
        with path.open("rb") as stream:
            (size,) = struct.unpack("<Q", stream.read(8))
            if size > MAX_HEADER:
                raise ValueError("header too long")
            header = json.loads(stream.read(size))
        header.pop("__metadata__", None)
        values = np.memmap(path, np.uint8, "r", 8 + size)
        return {name: _tensor(values, told) for name, told in header.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise EmbeddingFailed(
            f"The weights cannot be read ({type(error).__name__}).", code="model_load_failed"
        ) from error


def _tensor(values: npt.NDArray[np.uint8], told: dict[str, Any]) -> Array:
    start, end = told["data_offsets"]
    found: Array = values[start:end].view(TYPES[told["dtype"]]).reshape(told["shape"])
    return found
