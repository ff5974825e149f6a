"""An embedding source that a test watches, and may make fail or interrupt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.errors import EmbeddingFailed
from engine.testing.fakes import FakeEmbedding
from engine.types import Matrix, Purpose
from memory import wiring

Hook = Callable[[Sequence[str]], None]


class WatchedEmbedding(FakeEmbedding):
    """Calls ``before`` with the texts of every call; what that raises, the source raises."""

    def __init__(self, before: Hook) -> None:
        super().__init__(model="fake-e5", revision="watched")
        self.before = before

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Embeds unless the hook objects."""
        self.before(texts)
        return super().embed(texts, purpose=purpose)

    @property
    def documents(self) -> list[str]:
        """Every document embedded so far, in order."""
        return [
            text for purpose, texts in self.calls if purpose is Purpose.DOCUMENT for text in texts
        ]


_current: list[WatchedEmbedding] = []


def build(*, models_dir: Path, template: str) -> WatchedEmbedding:
    """The source that the running test watches."""
    del models_dir, template
    return _current[-1]


def watch(settings: Any, before: Hook = lambda texts: None) -> WatchedEmbedding:
    """Make the default local model a watched one."""
    _current[:] = [WatchedEmbedding(before)]
    settings.MEMORY_LOCAL_SOURCES = {
        **settings.MEMORY_LOCAL_SOURCES,
        "multilingual-e5-small": "memory.tests.watched.build",
    }
    wiring.reset()
    return _current[0]


def outage(_texts: Sequence[str]) -> None:
    """A hook: the source is down."""
    raise EmbeddingFailed("The source is down.", code="timeout")
