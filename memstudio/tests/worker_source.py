"""An embedding source that waits in the middle of a job while the file ``hold`` is in the home."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from engine.testing.fakes import FakeEmbedding
from engine.types import Matrix, Purpose

HOLD = "hold"
HELD = "held"
POLL_S = 0.02


class HeldEmbedding(FakeEmbedding):
    """The source of ``memory.tests.sources.fake``, which is held at its second batch."""

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Embeds, when it is let."""
        if purpose is Purpose.DOCUMENT and len(self.calls) > 1:
            home = Path(settings.MEMORY_STUDIO_HOME)
            while (home / HOLD).exists():
                (home / HELD).touch()
                threading.Event().wait(POLL_S)
        return super().embed(texts, purpose=purpose)


def build(*, models_dir: Path, template: str) -> HeldEmbedding:
    """As the settings ask for it."""
    del models_dir
    return HeldEmbedding(model="fake-e5", revision=f"1+{template}")
