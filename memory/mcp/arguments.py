"""Arguments of the tools. Names and bounds are those of the first seed and of REST."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memory.mcp.shapes import Arguments, Metadata, Moment, NonEmpty, Text, TypeName
from memory.stored_settings import MAX_TOKENS

Strategy = Literal["exact", "semantic", "hybrid", "recent"]
Reach = Literal["apiKey", "global"]

_Owner = Annotated[
    Text, Field(description="Owner, for keys that manage others; otherwise it is your own key.")
]
_Session = Annotated[Text, Field(description="Only memories of this conversation.")]
_Type = Annotated[TypeName, Field(description="Only memories of this type.")]
_Tokens = Annotated[
    int, Field(ge=0, le=MAX_TOKENS, description="Token budget of the answer; default as set.")
]
_Limit = Annotated[int, Field(ge=1, le=100, description="At most so many memories.")]
_Strategy = Annotated[
    Strategy,
    Field(description="exact: by words; semantic: by meaning; hybrid: both. Default as set."),
]
_Vault = Annotated[
    NonEmpty,
    Field(
        description="Id or name of a vault that you were granted; only query, limit, matchMode "
        "and cardsOnly count then."
    ),
]
_Id = Annotated[NonEmpty, Field(description="Id of the memory, as a search shows it.")]
_Key = Annotated[
    NonEmpty,
    Field(description="Short stable name, such as preference:editor. The same key is updated."),
]
_Content = Annotated[NonEmpty, Field(description="The statement itself, whole and on its own.")]
_Kind = Annotated[
    TypeName,
    Field(
        description="factual: facts and preferences; episodic: what happened or was decided; "
        "procedural: how something is done; semantic: general knowledge."
    ),
]
_Expires = Annotated[Moment | None, Field(description="ISO 8601 time after which it is hidden.")]
_Occurred = Annotated[Moment | None, Field(description="ISO 8601 time it speaks of.")]


class SearchArguments(Arguments):
    """``memory_search``."""

    query: Annotated[
        Text,
        Field(description="What to look for, in words or as a question; without it the newest."),
    ] = ""
    type: _Type | None = None
    session_id: _Session | None = None
    limit: _Limit = 20
    max_tokens: _Tokens | None = None
    strategy: _Strategy | None = None
    scope: Annotated[
        Reach, Field(description="global: also memories that are shared with everyone.")
    ] = "apiKey"
    api_key_id: _Owner | None = None
    vault_id: _Vault | None = None
    match_mode: Annotated[
        Literal["any", "all", "phrase"], Field(description="In a vault: which words must occur.")
    ] = "any"
    cards_only: Annotated[bool, Field(description="In a vault: no memories.")] = False


class ReadArguments(Arguments):
    """``memory_read``."""

    id: _Id
    vault_id: _Vault | None = None
    revision: (
        Annotated[int, Field(ge=1, description="In a vault: as it was at this revision.")] | None
    ) = None


class WhyArguments(Arguments):
    """``memory_why``."""

    memory_id: Annotated[NonEmpty, Field(description="Id of the memory that was expected.")]
    query: Annotated[Text, Field(description="The search that should have brought it.")] = ""
    type: _Type | None = None
    session_id: _Session | None = None
    limit: _Limit = 20
    max_tokens: _Tokens | None = None
    strategy: _Strategy | None = None
    scope: Reach = "apiKey"
    api_key_id: _Owner | None = None


class AddArguments(Arguments):
    """``memory_add``."""

    content: _Content
    key: _Key
    type: _Kind = "factual"
    session_id: Annotated[Text, Field(description="Conversation it belongs to.")] = ""
    metadata: Annotated[Metadata, Field(description="Anything else, as a JSON object.")] = Field(
        default_factory=dict
    )
    expires_at: _Expires = None
    occurred_at: _Occurred = None
    pinned: Annotated[bool, Field(description="Spared by retention and compaction.")] = False
    api_key_id: _Owner | None = None


class UpdateArguments(Arguments):
    """``memory_update``: what is not given stays; a null clears a time."""

    id: _Id
    content: _Content | None = None
    key: _Key | None = None
    type: _Kind | None = None
    session_id: Annotated[Text, Field(description="Conversation it belongs to.")] | None = None
    metadata: Annotated[Metadata, Field(description="Replaces the metadata as a whole.")] | None = (
        None
    )
    expires_at: _Expires = None
    occurred_at: _Occurred = None
    pinned: Annotated[bool, Field(description="Spared by retention and compaction.")] | None = None
    revision: (
        Annotated[int, Field(description="Refuse when it is not at this revision any more.")] | None
    ) = None


class DeleteArguments(Arguments):
    """``memory_delete``."""

    id: _Id


class ClearArguments(Arguments):
    """``memory_clear``."""

    type: _Type | None = None
    older_than: (
        Annotated[Moment, Field(description="ISO 8601: only memories created before.")] | None
    ) = None
    api_key_id: _Owner | None = None
