"""Providers as upstreams of chats: which one serves a model, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from engine.net.errors import UrlBlocked
from engine.net.policy import OPERATOR, check_url
from engine.providers.speech import SPEECH, ChatProtocol, chat_headers, chat_url
from memory import provider_sources, provider_table
from memory.errors import NotFound, TierDown
from memory.principal import Principal
from memory.provider_table import Entry
from memory.services import access


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a chat goes. ``base_url`` has no slash at its end: ``/chat/completions``,
    ``/messages`` or ``/models`` follow. ``headers`` hold the credential and are never shown.

    ``model`` is the name that the service knows.
    """

    provider: str
    kind: str
    protocol: ChatProtocol
    base_url: str
    model: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def upstreams(principal: Principal) -> list[Upstream]:
    """Every provider that can chat, in order; one whose address may not be called is left out."""
    access.require(principal, "chat")
    found = []
    for entry in _chatting():
        try:
            found.append(_opened(entry, ""))
        except TierDown:
            continue
    return found


def route(principal: Principal, model: str) -> Upstream:
    """Who serves a model: the provider before the slash, else the first that names the model,
    else the first that names none.

    Raises ``NotFound`` (``unknown_model``), and ``TierDown`` where its address may not be called.
    """
    access.require(principal, "chat")
    entries = _chatting()
    name, slash, rest = model.partition("/")
    named = next((entry for entry in entries if entry.name == name), None)
    if named is not None and slash and rest:
        return _opened(named, rest)
    for entry in entries:
        if entry.spec.serves(model):
            return _opened(entry, model)
    for entry in entries:
        if not entry.spec.patterns:
            return _opened(entry, model)
    raise NotFound(_("No provider serves this model."), code="unknown_model")


def _chatting() -> list[Entry]:
    return [
        entry
        for entry in provider_table.table()
        if entry.is_usable and provider_sources.abilities(entry.spec)["chat"]
    ]


def _opened(entry: Entry, model: str) -> Upstream:
    speaks = entry.spec.speaks
    url, protocol = chat_url(entry.spec.url, speaks), SPEECH[speaks].chat
    if url is None or protocol is None:
        raise TierDown(_("This provider does not chat."), code="no_chat")
    try:
        check_url(url, OPERATOR)
    except UrlBlocked as error:
        raise TierDown(str(error), code="url_blocked") from None
    return Upstream(
        provider=entry.name,
        kind=entry.spec.kind,
        protocol=protocol,
        base_url=url,
        model=model,
        headers=chat_headers(speaks, entry.key),
    )
