"""Shapes of extraction and of the inbox."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from memory.api.schemas.base import Metadata, NonEmpty, Shape, Strict, Text, TypeName
from memory.extraction_settings import DAILY_TOKENS

SpeakerName = Literal["user", "assistant"]
CategoryName = Literal["identity", "preference", "decision", "pattern", "instruction"]
StateName = Literal["pending", "accepted", "rejected"]
MAX_TURN = 1_000_000
Session = Annotated[Text, Field(max_length=200)]


class ExtractIn(Strict):
    """POST ``/api/memory/extract``. ``dryRun`` stores nothing; ``injected`` are texts that memory
    put into the prompt, of which nothing is learnt."""

    text: Annotated[NonEmpty, Field(max_length=MAX_TURN)]
    role: SpeakerName = "user"
    session_id: Session = ""
    api_key_id: Text = ""
    dry_run: bool = False
    injected: Annotated[list[Text], Field(max_length=100, default_factory=list)]


class FactOut(Shape):
    """One fact. ``content`` is what is preferred or done, ``statement`` the whole clause, which is
    what a memory holds. ``outcome``: ``stored``, ``known``, ``waiting`` (``reason`` says why) or
    ``rejected`` (somebody has decided about it before)."""

    category: CategoryName
    type: TypeName
    key: str
    content: str
    statement: str
    polarity: Literal["positive", "negative"]
    speaker: SpeakerName
    confidence: float
    rule: str
    language: str
    outcome: Literal["stored", "known", "waiting", "rejected"]
    reason: str
    memory_id: str | None
    inbox_id: str | None


class GuardedOut(Shape):
    """A piece that was held back, and why; without its text where that holds a secret."""

    text: str
    reason: str


class ExtractOut(Shape):
    """What became of a turn, or would."""

    dry_run: bool
    facts: list[FactOut]
    guarded: list[GuardedOut]


class ExtractionSettingsIn(Strict):
    """PUT ``/api/settings/extraction``: any of the fields. An empty ``extractionModel`` means
    rules alone."""

    extraction_enabled: bool | None = None
    extract_from_replies: bool | None = None
    extraction_model: Annotated[Text, Field(max_length=300)] | None = None
    extraction_daily_tokens: (
        Annotated[int, Field(ge=DAILY_TOKENS[0], le=DAILY_TOKENS[1])] | None
    ) = None


class ExtractionSettingsOut(Shape):
    """The settings of extraction."""

    extraction_enabled: bool
    extract_from_replies: bool
    extraction_model: str | None
    extraction_daily_tokens: int


class InboxQuery(Schema):
    """Query of GET ``/api/inbox``. An empty ``state`` lists every state."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    api_key_id: Text = ""
    state: Literal["pending", "accepted", "rejected", ""] = "pending"
    category: Annotated[Text, Field(max_length=12)] = ""
    reason: Annotated[Text, Field(max_length=40)] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    page: Annotated[int, Field(ge=1, le=10_000_000)] = 1


class InboxItemOut(Shape):
    """One fact that waits for a decision, or had one."""

    id: str
    api_key_id: str
    api_key_name: str
    session_id: str
    category: CategoryName
    type: TypeName
    key: str
    content: str
    polarity: Literal["positive", "negative"]
    speaker: SpeakerName
    confidence: float
    reason: str
    source: str
    metadata: Metadata
    trace_id: str | None
    state: StateName
    memory_id: str | None
    seen: int
    revision: int
    created_at: str
    updated_at: str
    decided_at: str | None
    decided_by: str


class InboxList(Shape):
    """One page, newest first; ``counts`` are items by state."""

    data: list[InboxItemOut]
    counts: dict[str, int]
    total: int
    page: int
    limit: int
    total_pages: int


class AcceptIn(Strict):
    """Body of accept: another text or type, and the revision that was seen."""

    content: Annotated[NonEmpty, Field(max_length=200_000)] | None = None
    type: TypeName | None = None
    revision: Annotated[int, Field(ge=1)] | None = None


class DecideIn(Strict):
    """Body of reject and reopen."""

    revision: Annotated[int, Field(ge=1)] | None = None


class DecisionsIn(Strict):
    """POST ``/api/inbox/decisions``: one decision about many items."""

    action: Literal["accept", "reject", "reopen"]
    ids: Annotated[list[Text], Field(min_length=1, max_length=200)]


class DecidedOut(Shape):
    """What became of one of many."""

    id: str
    state: StateName | None
    error: str | None


class DecisionsOut(Shape):
    """The items in the order in which they were sent."""

    results: list[DecidedOut]
    decided: int
