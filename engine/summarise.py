"""Compaction of old memories by arithmetic, without a language model (first seed).

Two ways: by age, many memories become a few summary texts; by token budget, the memories that
overflow it shrink to their first sentences. Pure functions: what becomes of the originals
(archived, linked, restorable) is the caller's affair, and so is keeping owners apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.text.normalize import Script, script_of
from engine.text.sentences import first_sentences
from engine.text.tokens import cut_to_tokens, estimate_tokens
from engine.types import MemoryType

SENTENCES = 3
MAX_TOKENS = 1000
"""Largest summary text; half of the default budget, so that one never fills a prompt alone."""

_SAMPLE = 4000


@dataclass(frozen=True, slots=True)
class Row:
    """A memory as compaction sees it."""

    id: int
    type: MemoryType
    key: str
    content: str


@dataclass(frozen=True, slots=True)
class SummaryText:
    """One text to store as a memory, and the memories whose place it takes."""

    text: str
    row_ids: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class AgeSummary:
    """Compaction by age. ``total_tokens`` is what the memories cost before."""

    texts: tuple[SummaryText, ...]
    total_tokens: int
    tokens_saved: int


@dataclass(frozen=True, slots=True)
class Shortened:
    """A memory that overflowed the budget, with its new text (perhaps the old one)."""

    row_id: int
    text: str
    tokens_saved: int


@dataclass(frozen=True, slots=True)
class BudgetSummary:
    """Compaction by budget: which memories fit as they are, and what the others become."""

    kept_ids: tuple[int, ...]
    shortened: tuple[Shortened, ...]
    original_count: int
    tokens_saved: int

    @property
    def summarized_count(self) -> int:
        """Memories that overflowed, whether or not their text changed."""
        return len(self.shortened)


def summarise_by_age(rows: Sequence[Row], *, days: int, max_tokens: int = MAX_TOKENS) -> AgeSummary:
    """Texts that stand for memories older than ``days``; ``rows`` are the oldest first.

    Each text begins with a header in the language of the memories (their number, and ``days``),
    then has one line a memory: ``[type] key: first 3 sentences``. No text exceeds ``max_tokens``
    by the estimate of ``engine.text.tokens``; a line too long for a text of its own is cut.
    """
    header = _HEADERS[_language(rows)]
    total = sum(estimate_tokens(row.content) for row in rows)
    room = max_tokens - estimate_tokens(header(len(rows), days)) - 1
    texts = [_text(group, header(len(group), days)) for group in _groups(rows, room)]
    spent = sum(text.tokens for text in texts)
    return AgeSummary(tuple(texts), total, max(0, total - spent))


def summarise_to_budget(rows: Sequence[Row], *, max_tokens: int) -> BudgetSummary:
    """Which memories fit ``max_tokens``, newest first, and the first sentences of the others.

    ``rows`` are the newest first. A memory that does not fit is passed over, and older ones may
    still fit.
    """
    kept: list[int] = []
    shortened: list[Shortened] = []
    left = max_tokens
    for row in rows:
        tokens = estimate_tokens(row.content)
        if tokens <= left:
            left -= tokens
            kept.append(row.id)
        else:
            text = first_sentences(row.content, SENTENCES)
            shortened.append(Shortened(row.id, text, tokens - estimate_tokens(text)))
    saved = sum(row.tokens_saved for row in shortened)
    return BudgetSummary(tuple(kept), tuple(shortened), len(rows), saved)


def _english_header(count: int, days: int) -> str:
    memories = "1 memory" if count == 1 else f"{count} memories"
    return f"Summary of {memories} older than {days} {'day' if days == 1 else 'days'}:"


def _chinese_header(count: int, days: int) -> str:
    return f"{count} 条早于 {days} 天的记忆摘要："


def _japanese_header(count: int, days: int) -> str:
    return f"{days}日より前の記憶{count}件の要約："


_HEADERS: dict[Script, Callable[[int, int], str]] = {
    Script.LATIN: _english_header,
    Script.HAN: _chinese_header,
    Script.KANA: _japanese_header,
}


def _language(rows: Sequence[Row]) -> Script:
    sample: list[str] = []
    size = 0
    for row in rows:
        sample.append(row.content)
        size += len(row.content)
        if size > _SAMPLE:
            break
    script = script_of(" ".join(sample))
    return script if script in _HEADERS else Script.LATIN


def _groups(rows: Sequence[Row], room: int) -> list[list[tuple[int, str]]]:
    """Lines with their memory's id, in groups that fit into ``room`` tokens each."""
    groups: list[list[tuple[int, str]]] = []
    left = -1
    for row in rows:
        line = cut_to_tokens(_line(row), room - 1)
        tokens = estimate_tokens(line) + 1
        if tokens > left:
            groups.append([])
            left = room
        groups[-1].append((row.id, line))
        left -= tokens
    return groups


def _line(row: Row) -> str:
    # One line a memory, whatever line breaks its text holds.
    text = " ".join(first_sentences(row.content, SENTENCES).split())
    return f"[{row.type.value}] {row.key}: {text}"


def _text(group: Sequence[tuple[int, str]], header: str) -> SummaryText:
    text = "\n".join([header, *(line for _, line in group)])
    return SummaryText(text, tuple(row_id for row_id, _ in group), estimate_tokens(text))
