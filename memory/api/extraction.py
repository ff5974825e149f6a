"""``/api/memory/extract``: what a turn says about its user; and the settings of that."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from engine.extract.facts import Speaker
from memory.api.auth import caller
from memory.api.schemas.extraction import (
    ExtractIn,
    ExtractionSettingsIn,
    ExtractionSettingsOut,
    ExtractOut,
)
from memory.services import access
from memory.services.extraction import learning, settings
from memory.services.extraction.learning import Result, Turn

router = Router(tags=["extraction"], by_alias=True)
settings_router = Router(tags=["settings"], by_alias=True)


@router.post("/extract", response=ExtractOut)
def extract(request: HttpRequest, payload: ExtractIn) -> dict[str, Any]:
    """Extract facts from one turn by rules, and store them unless it is a dry run.

    Facts of little confidence and orders to a model wait in the inbox. Secrets are dropped.
    """
    turn = Turn(
        text=payload.text,
        speaker=Speaker(payload.role),
        session=payload.session_id,
        injected=payload.injected,
    )
    act = learning.preview if payload.dry_run else learning.learn
    learnt = act(caller(request), turn, owner=payload.api_key_id or None)
    return {
        "dry_run": payload.dry_run,
        "facts": [_fact(result) for result in learnt.results],
        "guarded": [{"text": piece.text, "reason": piece.reason} for piece in learnt.dropped],
    }


def _fact(result: Result) -> dict[str, Any]:
    fact = result.fact
    return {
        "category": fact.category.value,
        "type": fact.type.value,
        "key": fact.key,
        "content": fact.content,
        "statement": fact.statement,
        "polarity": fact.polarity.value,
        "speaker": fact.speaker.value,
        "confidence": round(fact.confidence, 3),
        "rule": fact.rule,
        "language": fact.language,
        "outcome": result.outcome.value,
        "reason": result.reason,
        "memory_id": str(result.memory.pk) if result.memory else None,
        "inbox_id": str(result.item.pk) if result.item else None,
    }


@settings_router.get("/extraction", response=ExtractionSettingsOut)
def read_extraction_settings(request: HttpRequest) -> dict[str, Any]:
    """The settings of extraction in force."""
    access.require(caller(request), "manage")
    return settings.as_json(settings.get())


@settings_router.put("/extraction", response=ExtractionSettingsOut)
def update_extraction_settings(
    request: HttpRequest, payload: ExtractionSettingsIn
) -> dict[str, Any]:
    """Change the settings that are sent."""
    changes = payload.model_dump(exclude_none=True, by_alias=True)
    return settings.as_json(settings.update(caller(request), changes))
