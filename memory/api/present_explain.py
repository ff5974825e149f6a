"""The tokenizer lens and why-not to the shapes of the API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic.alias_generators import to_camel

from engine.text.lens import Lens
from memory.api.present import resolution_out
from memory.services import why_not_text
from memory.services.why_not import WhyNot
from memory.services.why_not_lists import ListPlace


def lens_out(seen: Lens) -> dict[str, Any]:
    """Fields of ``LensOut``."""
    return {
        "folded": seen.folded,
        "language": seen.language,
        "analyzer": seen.analyzer,
        "tokens": [
            {
                "text": token.text,
                "term": token.term,
                "kind": token.kind.value,
                "start": token.start,
                "end": token.end,
                "indexed": token.is_indexed,
            }
            for token in seen.tokens
        ],
        "terms": list(seen.terms),
        "words": list(seen.words),
    }


def why_not_out(told: WhyNot) -> dict[str, Any]:
    """Fields of ``WhyNotOut``."""
    numbers = {to_camel(name): value for name, value in asdict(told.numbers).items()}
    left = numbers.pop("left")
    return {
        "memoryId": str(told.memory.pk),
        "found": told.found,
        "rank": told.rank,
        "stage": told.stage or None,
        "reason": told.reason or None,
        "message": why_not_text.sentence(told),
        "hints": [{"code": code, "message": message} for code, message in why_not_text.hints(told)],
        "detail": {
            **numbers,
            "shortBy": told.numbers.short_by,
            "budgetLeft": left,
            "lists": [_place_out(place) for place in told.lists],
            "matchedTerms": list(told.matched),
            "missingTerms": list(told.missing),
        },
        "resolution": resolution_out(told.view) if told.view else None,
    }


def _place_out(place: ListPlace) -> dict[str, Any]:
    return {
        **{to_camel(name): value for name, value in asdict(place).items()},
        "shortBy": place.short_by,
        "reason": place.reason or None,
        "message": why_not_text.place_text(place),
    }
