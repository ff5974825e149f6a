"""Structured results of the tools of vaults."""

from __future__ import annotations

from engine.vault.search import Found as FoundChunk
from memory.mcp.shapes import Result
from memory.services.vaults.asking import AskView
from memory.services.vaults.searching import SearchView


class FoundPassage(Result):
    """A passage. ``[S1]`` names it in this result only; ``id`` and ``revision`` its document.

    Offsets are bytes of the document's UTF-8 text.
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


class Passages(Result):
    """What a vault holds about a query, best first."""

    vault_id: str
    results: list[FoundPassage]
    reranked: str
    note: str | None = None


class Answered(Passages):
    """An answer that cites passages of ``results``. That they exist is checked, not that it is
    true."""

    answer: str | None = None
    citations: list[str]
    insufficient_evidence: bool


def passages(view: SearchView) -> Passages:
    """A search as a client sees it."""
    return Passages(
        vault_id=str(view.vault.uid),
        results=[_passage(item) for item in view.found],
        reranked=view.reranked,
        note="; ".join(view.warnings) or None,
    )


def answered(view: AskView) -> Answered:
    """An answer as a client sees it."""
    answer = view.asked.answer
    return Answered(
        **passages(view.search).model_dump(),
        answer=answer.text,
        citations=list(answer.citations),
        insufficient_evidence=answer.is_insufficient,
    )


def _passage(item: FoundChunk) -> FoundPassage:
    chunk = item.chunk
    return FoundPassage(
        label=item.label,
        id=chunk.asset,
        revision=chunk.revision,
        kind=chunk.kind,
        title=chunk.passage.title,
        chunk_hash=chunk.chunk_hash,
        byte_start=chunk.byte_start,
        byte_end=chunk.byte_end,
        text=chunk.passage.body,
        score=item.score,
    )
