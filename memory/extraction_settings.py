"""The settings of extraction, beside those of ``stored_settings`` in the same stored row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from memory.stored_settings import Field, read

DAILY_TOKENS: Final = (0, 100_000_000)

EXTRACTION_FIELDS: Final = (
    Field("is_on", "extractionEnabled", "memoryExtractionEnabled", "flag", True),
    Field("reads_replies", "extractFromReplies", "memoryExtractFromReplies", "flag", False),
    Field("model", "extractionModel", "memoryExtractionModel", "text", None),
    Field(
        "daily_tokens",
        "extractionDailyTokens",
        "memoryExtractionDailyTokens",
        "integer",
        50_000,
        *DAILY_TOKENS,
    ),
)


@dataclass(frozen=True, slots=True)
class ExtractionSettings:
    """``is_on``: whether chats are learnt from. ``reads_replies``: also what the model answered.

    ``model`` (``provider/model``) is asked beside the rules, for ``daily_tokens`` of each key and
    day at most; None for rules alone.
    """

    is_on: bool
    reads_replies: bool
    model: str | None
    daily_tokens: int


def normalise(stored: Mapping[str, Any]) -> ExtractionSettings:
    """Settings from stored values; never raises."""
    return ExtractionSettings(**read(EXTRACTION_FIELDS, stored))
