"""Answers of vaults from a chat service whose language is not one of ``engine.vault.generator``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.errors import GenerationFailed
from engine.generate.chat import ChatEndpoint, ChatGenerator
from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.types import Health
from engine.vault.errors import VaultError
from engine.vault.generator import CODE, MAX_BYTES, failed

MOST_TOKENS: Final = 4096
"""The length of an answer where a service has to be told one."""


class ChatWriter:
    """``TextGenerator`` with the errors of vaults over a ``ChatGenerator``. Thread-safe."""

    def __init__(
        self, endpoint: ChatEndpoint, *, client: HttpClient, limits: Limits | None = None
    ) -> None:
        limits = limits or Limits(max_bytes=MAX_BYTES)
        self._inner = ChatGenerator(endpoint, client=client, limits=limits)

    @property
    def model(self) -> str:
        return self._inner.model

    def generate(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> str:
        """What the model writes after the messages; 0 tokens are as many as answers need.

        Raises ``VaultError`` as ``RemoteGenerator``.
        """
        try:
            return self._inner.generate(messages, max_tokens=max_tokens or MOST_TOKENS)
        except GenerationFailed as error:
            cause = error.__cause__
            if isinstance(cause, UrlBlocked | HttpFailed):
                raise failed(cause) from error
            raise VaultError(str(error), code=CODE, reason=error.code) from error

    def health(self) -> Health:
        """That it is configured; asking would cost money, so nothing is asked."""
        return self._inner.health()
