"""What providers take: who refuses a system message, and who wants it first (first seed)."""

from __future__ import annotations

import re
from typing import Final

WITHOUT_SYSTEM: Final = frozenset(
    {"o1", "o1-mini", "o1-preview", "glm", "glmt", "glm-cn", "zai", "qianfan"}
)
SYSTEM_FIRST: Final = frozenset({"mimo", "xiaomi-mimo"})
SYSTEM_ANYWHERE: Final = frozenset({"openai", "azure", "azure-openai"})
"""Known to take a system message between turns. Chat templates of open models often refuse it."""
_DAY: Final = re.compile(r"-\d{4}-\d{2}-\d{2}\Z")


def takes_system(provider: object) -> bool:
    """Whether a provider takes a system message; one that is not known does."""
    return _name(provider) not in WITHOUT_SYSTEM


def wants_system_first(provider: object) -> bool:
    """Whether a provider takes one system message only, at the beginning."""
    return _name(provider) in SYSTEM_FIRST


def takes_system_anywhere(provider: object) -> bool:
    """Whether a provider is known to take a system message between turns."""
    return _name(provider) in SYSTEM_ANYWHERE


def _name(provider: object) -> str:
    """A provider or a model as the lists have it: models are also named by their day."""
    return _DAY.sub("", provider.strip().lower()) if isinstance(provider, str) else ""
