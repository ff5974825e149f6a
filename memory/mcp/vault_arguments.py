"""Arguments of the tools of vaults. None chooses an address, a model or a key."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memory.mcp.shapes import Arguments, NonEmpty, Text

_Vault = Annotated[NonEmpty, Field(description="Id or name of a vault that you were granted.")]
_Mode = Annotated[
    Literal["bm25", "vector", "hybrid"],
    Field(description="bm25: by words; vector: by meaning; hybrid: both."),
]
_Match = Annotated[
    Literal["any", "all", "phrase"],
    Field(description="any: some of the words; all: every word; phrase: the words as they stand."),
]
_Limit = Annotated[int, Field(ge=1, le=100, description="At most so many passages.")]
_Cards = Annotated[bool, Field(description="Only knowledge cards, no memories.")]


class RetrieveArguments(Arguments):
    """``memory_retrieve``."""

    vault_id: _Vault
    query: Annotated[Text, Field(description="What to look for, in words or as a question.")]
    mode: _Mode = "hybrid"
    match_mode: _Match = "any"
    limit: _Limit = 8
    cards_only: _Cards = False
    rerank: Annotated[bool, Field(description="Whether to order the best again.")] = True


class AskArguments(Arguments):
    """``memory_ask``."""

    vault_id: _Vault
    question: Annotated[Text, Field(description="A whole question.")]
    mode: _Mode = "hybrid"
    limit: _Limit = 8
