"""Who may chat, and all that is read once for a chat: settings, key, upstreams."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from engine.providers.speech import ChatProtocol
from memory import chat_settings, extraction_settings, provider_table, wiring
from memory.chat_settings import ChatSettings
from memory.errors import Forbidden, TierDown
from memory.extraction_settings import ExtractionSettings
from memory.models import ApiKey
from memory.principal import Principal
from memory.provider_table import Entry
from memory.services import keys, upstreams
from memory.services.upstreams import Upstream
from memory.stored_settings import Settings, normalise


@dataclass(frozen=True, slots=True)
class Admission:
    """A caller who may chat."""

    principal: Principal
    key: ApiKey
    memory: Settings
    chat: ChatSettings
    entries: tuple[Entry, ...] = ()
    extraction: ExtractionSettings | None = None

    @property
    def is_injecting(self) -> bool:
        """Whether chats of this key are given memories."""
        if not self.memory.enabled or self.memory.max_tokens <= 0:
            return False
        if self.key.injection == ApiKey.Injection.INHERIT:
            return self.chat.injects
        return self.key.injection == ApiKey.Injection.ON

    @property
    def is_reading_replies(self) -> bool:
        """Whether what the model answers is learnt from as well."""
        chosen = self.extraction
        return self.memory.enabled and bool(chosen and chosen.is_on and chosen.reads_replies)


def admit(secret: str) -> Admission:
    """The caller of a bearer secret. Writes nothing.

    Raises ``Unauthorized``, and ``Forbidden`` for a key without the scope ``chat``.
    """
    admitted = of_key(keys.recognise(secret))
    if not admitted.principal.may("chat"):
        message = _("This needs the scope “%(scope)s”.") % {"scope": "chat"}
        raise Forbidden(message, code="scope_missing")
    return admitted


def of_key(key: ApiKey) -> Admission:
    """What holds for chats of a key, whether or not it may chat."""
    principal = keys.principal_of(key)
    stored = wiring.stored_values()
    entries = tuple(provider_table.table())
    return Admission(
        principal,
        key,
        normalise(stored),
        chat_settings.normalise(stored),
        entries,
        extraction_settings.normalise(stored),
    )


def routes(admitted: Admission, model: str, protocol: ChatProtocol) -> list[Upstream]:
    """Where a model can be asked, in order; the first is meant, the others are for when it is down.

    Reads nothing. Raises ``NotFound``, and ``TierDown`` where none of their addresses may be
    called.
    """
    found: list[Upstream] = []
    refusal: TierDown | None = None
    named = upstreams.routes(_chatter(admitted), model, protocol, entries=admitted.entries)
    for entry, name in named:
        try:
            found.append(upstreams.opened(entry, name))
        except TierDown as error:
            refusal = refusal or error
    if not found and refusal is not None:
        raise refusal
    return found


def upstreams_of(admitted: Admission) -> list[Upstream]:
    """Every provider that can chat, in order. Reads nothing."""
    return upstreams.upstreams(_chatter(admitted), entries=admitted.entries)


def _chatter(admitted: Admission) -> Principal:
    """A preview may be of a key that does not chat yet."""
    principal = admitted.principal
    return replace(principal, scopes=principal.scopes | {"chat"})
