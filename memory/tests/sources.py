"""The embedding source of tests: cheap, deterministic, near for texts that share words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import ClassVar

from engine.testing.fakes import FakeEmbedding
from engine.types import Health, Matrix, Purpose


def fake(*, models_dir: Path, template: str) -> FakeEmbedding:
    """Stands in for the default model."""
    del models_dir
    return FakeEmbedding(model="fake-e5", revision=f"1+{template}")


def fake_light(*, models_dir: Path, template: str) -> FakeEmbedding:
    """Stands in for the light model: another vector space."""
    del models_dir
    return FakeEmbedding(dim=48, model="fake-light", revision=f"1+{template}")


class RecordingEmbedding(FakeEmbedding):
    """Tells every query that it was asked to embed."""

    queries: ClassVar[list[str]] = []

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """As the fake one."""
        if purpose is Purpose.QUERY:
            self.queries.extend(texts)
        return super().embed(texts, purpose=purpose)


def recording(*, models_dir: Path, template: str) -> RecordingEmbedding:
    """Stands in for the default model; the same space as ``fake``."""
    del models_dir
    return RecordingEmbedding(model="fake-e5", revision=f"1+{template}")


class LoadingEmbedding(FakeEmbedding):
    """A model that is loaded by its first health check, once the gate is open."""

    gate = Event()
    is_loaded = False

    def health(self) -> Health:
        """Load, then be healthy."""
        self.gate.wait(30)
        self.is_loaded = True
        return super().health()


def loading(*, models_dir: Path, template: str) -> LoadingEmbedding:
    """Stands in for a model that takes its time; the same space as ``fake``."""
    del models_dir
    return LoadingEmbedding(model="fake-e5", revision=f"1+{template}")
