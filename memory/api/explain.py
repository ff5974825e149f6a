"""``/api/memory``: how words are cut, and why an expected memory did not come back."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from engine.types import Purpose
from memory.api.auth import caller
from memory.api.present_explain import lens_out, why_not_out
from memory.api.requests import retrieve_request
from memory.api.schemas.explain import LensIn, LensOut, WhyNotIn, WhyNotOut
from memory.services.lens import lens
from memory.services.why_not import why_not

router = Router(tags=["engine"], by_alias=True)


@router.post("/tokenizer-lens", response=LensOut)
def tokenizer_lens(request: HttpRequest, payload: LensIn) -> dict[str, Any]:
    """How a query or a document is folded and cut into terms, with the place of each."""
    return lens_out(lens(caller(request), payload.text, Purpose(payload.purpose)))


@router.post("/why-not", response=WhyNotOut)
def explain_absence(request: HttpRequest, payload: WhyNotIn) -> dict[str, Any]:
    """The stage at which an expected memory was lost, and by how much. Changes nothing."""
    return why_not_out(why_not(caller(request), retrieve_request(payload), payload.memory_id))
