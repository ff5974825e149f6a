"""Shapes of ``/api/vaults``. Search and ask answer in the second seed's own names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from memory.api.schemas.base import NonEmpty, Shape, Strict, Text
from memory.api.schemas.memories import Moment

KindName = Literal["memory", "card", "private", "credential", "file"]
RoleName = Literal["reader", "writer", "manager"]
ModeName = Literal["bm25", "keyword", "vector", "hybrid"]
MatchName = Literal["any", "all", "phrase"]
Words = dict[str, str | list[str]]

_Secret = Annotated[Text, Field(max_length=1024, json_schema_extra={"format": "password"})]
_Minutes = Annotated[int, Field(ge=0, le=1440)]


class VaultIn(Strict):
    """POST ``/api/vaults``."""

    name: NonEmpty
    sealed: bool = True
    passphrase: _Secret = ""
    device_only: bool = False
    auto_lock_minutes: _Minutes = 15
    api_key_id: Text | None = None


class VaultChange(Strict):
    """PUT ``/api/vaults/{vault}``: what is not given stays. ``embeddingModel`` empty: default."""

    name: NonEmpty | None = None
    device_only: bool | None = None
    auto_lock_minutes: _Minutes | None = None
    embedding_model: Annotated[Text, Field(max_length=80)] | None = None
    embedding_dim: Annotated[int, Field(ge=1, le=16_384)] | None = None


class OpeningIn(Strict):
    """What opens a sealed vault: one of the two."""

    passphrase: _Secret = ""
    recovery_key: _Secret = ""


class PassphraseIn(OpeningIn):
    """POST ``…/passphrase``."""

    new_passphrase: _Secret


class ExportIn(Strict):
    """POST ``…/export``: what opens the file; it may be another passphrase than the vault's."""

    passphrase: _Secret


class ExportOut(Shape):
    """The encrypted file, in base64."""

    assets: int
    content_base64: str


class ImportIn(Strict):
    """POST ``/api/vaults/import``: into a vault that is there, or a new one."""

    content_base64: NonEmpty
    passphrase: _Secret
    into: Text = ""
    name: Text = ""
    sealed: bool = True


class VaultOut(Shape):
    """A vault. ``unlocked`` is always true for one that is not sealed."""

    id: str
    name: str
    sealed: bool
    unlocked: bool
    device_only: bool
    auto_lock_minutes: int
    embedding_model: str
    embedding_dim: int | None
    role: str
    api_key_id: str
    api_key_name: str
    created_at: str
    updated_at: str


class VaultList(Shape):
    """The vaults that the caller may use, by name."""

    data: list[VaultOut]


class VaultMade(VaultOut):
    """A new vault. ``recoveryKey`` is never shown again; null for an open vault."""

    recovery_key: str | None


class RecoveryOut(Shape):
    """A new recovery key, which is never shown again; the earlier one opens nothing any more."""

    recovery_key: str


class VaultStatus(VaultOut):
    """A vault with the state of its index; no text and no key.

    ``index.place`` is where it is searched: ``memory``, ``database``, or ``both`` (words in the
    database, meaning in memory). ``limits`` are those of memory, null where there is none.

    ``origin`` of a service is ``config`` (the file), ``studio``, or ``memories`` where the vault is
    embedded like memories are. Without ``generation`` there are no answers, without ``rerank`` the
    light rule ranks.
    """

    assets: dict[str, int]
    index: dict[str, Any]
    limits: dict[str, int] | None
    embedding: dict[str, str]
    generation: dict[str, str] | None
    rerank: dict[str, str] | None
    generation_host: str
    warnings: list[str]


class ImportOut(Shape):
    """What an import did. ``recoveryKey`` is that of a new sealed vault, shown this once."""

    id: str
    name: str
    recovery_key: str | None
    created: int
    revised: int
    unchanged: int


class GrantIn(Strict):
    """PUT ``…/grants``: ``key`` is an id or a name."""

    key: NonEmpty
    role: RoleName = "reader"
    expires_at: Moment = None


class GrantOut(Shape):
    """What another key may do, and until when."""

    api_key_id: str
    api_key_name: str
    role: str
    expires_at: str | None
    created_at: str


class GrantList(Shape):
    """Every grant, ended ones too."""

    data: list[GrantOut]


class AssetQuery(Schema):
    """Query of GET ``…/assets``."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    kind: KindName | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    offset: Annotated[int, Field(ge=0, le=10_000_000)] = 0


class AssetIn(Strict):
    """POST ``…/assets``. A known ``source`` of the same kind becomes a revision."""

    body: NonEmpty
    title: Text = ""
    kind: KindName = "card"
    meta: Words = Field(default_factory=dict)
    source: Annotated[Text, Field(max_length=1024)] = ""


class AssetChange(Strict):
    """PUT ``…/assets/{asset}``: what is not given stays. ``revision`` is the one it was read at:
    when it is not the present one, nothing is changed (``stale``)."""

    revision: int | None = None
    body: NonEmpty | None = None
    title: NonEmpty | None = None
    meta: Words | None = None


class IngestIn(Strict):
    """POST ``…/ingest``: the bytes of a file in base64, and its name."""

    name: Annotated[NonEmpty, Field(max_length=1024)]
    title: Text = ""
    content_base64: NonEmpty


class AssetHead(Shape):
    """An asset without its body."""

    id: str
    kind: str
    revision: int
    title: str
    meta: dict[str, Any]
    source: str
    size: int
    created_at: str
    updated_at: str


class AssetOut(AssetHead):
    """An asset whole."""

    body: str


class AssetStored(AssetHead):
    """An asset that was stored, and what became of it."""

    outcome: Literal["created", "revised", "unchanged"]


class AssetList(Shape):
    """One page, newest first."""

    data: list[AssetHead]
    total: int


class AssetRevision(Shape):
    """An earlier revision, without its texts."""

    revision: int
    size: int
    written_at: str
    replaced_at: str
    replaced_by: str


class RevisionList(Shape):
    """Newest first."""

    data: list[AssetRevision]


class VaultSearchIn(Strict):
    """POST ``…/search``. ``grouped`` names each document once, by its best chunk."""

    query: Text
    mode: ModeName = "hybrid"
    match_mode: MatchName = "any"
    limit: int = 8
    cards_only: bool = False
    rerank: bool = True
    grouped: bool = False


class AskIn(Strict):
    """POST ``…/ask``."""

    question: Text
    mode: ModeName = "hybrid"
    match_mode: MatchName = "any"
    limit: int = 8
    cards_only: bool = False
    rerank: bool = True


class ScoresOut(Schema):
    """Scores of a chunk; null where it was not in the list, or the stage did not run."""

    bm25: float | None
    vector: float | None
    rrf: float | None
    rerank: float | None


class ChunkOut(Schema):
    """A chunk of the result. ``[S1]`` names it within this result only.

    ``id`` and ``revision`` identify the document; ``chunk_hash`` only the text. Offsets are bytes
    of the document's UTF-8 body.
    """

    label: str
    id: str
    revision: int
    kind: str
    title: str
    chunk_hash: str
    byte_start: int
    byte_end: int
    text: str
    score: float
    scores: ScoresOut


class IndexOut(Schema):
    """What was searched."""

    generation: int
    chunks: int
    embedded: int


class VaultSearchOut(Schema):
    """What a search found."""

    vault_id: str
    query: str
    mode: str
    match_mode: str
    reranked: Literal["none", "light", "service"]
    index: IndexOut
    results: list[ChunkOut]
    warnings: list[str]


class AskOut(VaultSearchOut):
    """The answer beside the search that it is drawn from.

    Citations prove that the answer refers to passages that exist, not that it is true.
    """

    answer: str | None
    citations: list[str]
    insufficient_evidence: bool


class PrepareIn(Strict):
    """POST ``…/index``: how long to work at most; the next call goes on from there."""

    budget_seconds: Annotated[int, Field(ge=1, le=300)] = 300


class PreparedOut(Schema):
    """An index, ready when ``complete``."""

    vault_id: str
    chunks: int
    embedded: int
    made: int
    model: str
    complete: bool
