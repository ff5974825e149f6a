"""The embedding source of tests: cheap, deterministic, near for texts that share words."""

from __future__ import annotations

from pathlib import Path

from engine.testing.fakes import FakeEmbedding


def fake(*, models_dir: Path, template: str) -> FakeEmbedding:
    """Stands in for the default model."""
    del models_dir
    return FakeEmbedding(model="fake-e5", revision=f"1+{template}")


def fake_light(*, models_dir: Path, template: str) -> FakeEmbedding:
    """Stands in for the light model: another vector space."""
    del models_dir
    return FakeEmbedding(dim=48, model="fake-light", revision=f"1+{template}")
