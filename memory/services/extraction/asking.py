"""Extraction by a model that the settings name, within a hard budget of each key and day.

The tokens of a request are taken from the budget before it is sent, so that many at once cannot
exceed it together; what was not used is given back. A request that fails costs what it was
expected to: nobody knows what the service charged.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from django.db.models import F
from django.utils.translation import gettext as _

from engine.errors import EngineError
from engine.extract import reading_model
from engine.extract.feedback import without_injected
from engine.extract.screening import Screened, screen
from engine.extract.secrets import without_secrets
from engine.generate.chat import ChatEndpoint, ChatGenerator
from engine.providers.speech import ChatProtocol
from engine.text.tokens import estimate_tokens
from memory import wiring
from memory.clock import now
from memory.errors import ServiceError, TierDown, from_engine
from memory.extraction_settings import ExtractionSettings
from memory.models import ApiKey, ExtractionDay
from memory.principal import SYSTEM
from memory.services import upstreams
from memory.services.extraction.learning import Turn

SOURCE: Final = "model"
SAFETY: Final = 1.4
"""By how much a service's own count of a text may exceed ours."""


def ask(owner: ApiKey, turn: Turn, chosen: ExtractionSettings) -> Screened:
    """The facts that the model finds in a turn, screened like those of the rules.

    Secrets are taken out before anything is sent. Raises ``ServiceError``: ``budget_spent``, for a
    model that no provider serves, for a service that fails, and for an answer of another shape.
    """
    text = without_secrets(without_injected(turn.text, turn.injected))
    messages = reading_model.messages_for(text)
    expected = round(SAFETY * sum(estimate_tokens(each["content"]) for each in messages))
    expected += reading_model.MAX_ANSWER_TOKENS
    generator = _generator(chosen.model or "")
    row = take(owner, expected, chosen.daily_tokens)
    try:
        written = generator.write(messages, max_tokens=reading_model.MAX_ANSWER_TOKENS)
        _give_back(row, expected - (written.tokens or expected))
        extraction = reading_model.parse(written.text, text, turn.speaker)
    except EngineError as error:
        ExtractionDay.objects.filter(pk=row.pk).update(failures=F("failures") + 1)
        raise from_engine(error) from None
    return screen(extraction, injected=turn.injected)


def take(owner: ApiKey, tokens: int, budget: int) -> ExtractionDay:
    """Take tokens from the budget of today. Raises ``TierDown`` (``budget_spent``)."""
    row = of_day(owner, now().date())
    within = ExtractionDay.objects.filter(pk=row.pk, tokens__lte=budget - tokens)
    if within.update(tokens=F("tokens") + tokens, calls=F("calls") + 1) != 1:
        message = _("The tokens of this key for learning by a model are spent for today.")
        raise TierDown(message, code="budget_spent")
    return row


def of_day(owner: ApiKey, day: date) -> ExtractionDay:
    """What was spent for an owner on a day."""
    return ExtractionDay.objects.get_or_create(owner=owner, day=day)[0]


def _give_back(row: ExtractionDay, tokens: int) -> None:
    """Correct what was taken by what the service counted, in either direction."""
    rows = ExtractionDay.objects.filter(pk=row.pk)
    if tokens > 0:
        rows = rows.filter(tokens__gte=tokens)
    rows.update(tokens=F("tokens") - tokens)


def _generator(model: str) -> ChatGenerator:
    try:
        upstream = upstreams.route(SYSTEM, model)
    except ServiceError as error:
        raise TierDown(str(error), code="no_extraction_model") from None
    endpoint = ChatEndpoint(
        upstream.base_url,
        upstream.model,
        "anthropic" if upstream.protocol is ChatProtocol.ANTHROPIC else "openai",
        upstream.headers,
    )
    return ChatGenerator(endpoint, client=wiring.http_client(), schema=reading_model.SCHEMA)
