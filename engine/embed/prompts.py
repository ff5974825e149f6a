"""What a model really reads: the cleaned text inside the prompt of its purpose."""

from __future__ import annotations

from dataclasses import dataclass

from engine.types import Purpose

MAX_CHARS = 16_384
"""Longest text given to a tokenizer. No model of the catalogue reads further, and tokenizing has
to stay cheap whatever is pasted in."""

NO_TITLE = "none"


@dataclass(frozen=True, slots=True)
class Span:
    """A prompt, and where in it the text itself begins (code points)."""

    prompt: str
    start: int


@dataclass(frozen=True, slots=True)
class Prompts:
    """Templates of a model, with ``{text}`` and optionally ``{title}``."""

    query: str = "{text}"
    document: str = "{text}"

    def apply(self, text: str, *, purpose: Purpose, title: str | None = None) -> str:
        """The prompt for one text. A missing or blank title reads ``none`` (EmbeddingGemma)."""
        return self.span(text, purpose=purpose, title=title).prompt

    def span(self, text: str, *, purpose: Purpose, title: str | None = None) -> Span:
        """The prompt for one text, and where the text begins in it."""
        template = self.query if purpose is Purpose.QUERY else self.document
        # A title is one line, so that it cannot end its own field of the prompt.
        heading = " ".join((title or "").split()) or NO_TITLE
        # Split before filling in: the words of a title or a text are never read as a template.
        before, _, after = template.partition("{text}")
        before, after = before.replace("{title}", heading), after.replace("{title}", heading)
        return Span(before + text + after, len(before))


def clean(text: str) -> str:
    """A text every tokenizer takes: no NUL, no lone surrogate, at most ``MAX_CHARS`` long."""
    if len(text) > MAX_CHARS:
        # Blanks are folded first, or a long run of them would push the words out.
        text = " ".join(text.split())[:MAX_CHARS]
    text = text.replace("\0", " ")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
