"""Providers as upstreams of chats: which one serves a model, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from engine.chat.families import takes_system_anywhere
from engine.net.errors import UrlBlocked
from engine.net.policy import OPERATOR, check_url
from engine.providers.catalogue import COMPATIBLE
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

    ``model`` is the name that the service knows. ``family`` decides where in a chat it takes
    memories (``engine.chat.families``): its kind, or the name of a server of one's own.
    """

    provider: str
    kind: str
    protocol: ChatProtocol
    base_url: str
    model: str = ""
    family: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def upstreams(principal: Principal, *, entries: Sequence[Entry] | None = None) -> list[Upstream]:
    """Every provider that can chat, in order; one whose address may not be called is left out.

    ``entries`` are those of the table, for who has read it already.
    """
    access.require(principal, "chat")
    found = []
    for entry in _chatting(entries):
        try:
            found.append(opened(entry, ""))
        except TierDown:
            continue
    return found


def route(principal: Principal, model: str) -> Upstream:
    """Who serves a model: the provider before the slash, else the first that names the model,
    else the first that names none.

    Raises ``NotFound`` (``unknown_model``), and ``TierDown`` where its address may not be called.
    """
    return opened(*routes(principal, model)[0])


def routes(
    principal: Principal,
    model: str,
    protocol: ChatProtocol | None = None,
    *,
    entries: Sequence[Entry] | None = None,
) -> list[tuple[Entry, str]]:
    """Every provider that may serve a model, in order, with the name it knows; see ``route``.

    ``protocol`` leaves out those that speak another, but not the one before the slash.
    """
    access.require(principal, "chat")
    entries = _chatting(entries)
    name, slash, rest = model.partition("/")
    named = next((entry for entry in entries if entry.name == name), None)
    if named is not None and slash and rest:
        return [(named, rest)]
    if protocol is not None:
        entries = [entry for entry in entries if SPEECH[entry.spec.speaks].chat is protocol]
    naming = [entry for entry in entries if entry.spec.serves(model)]
    found = [*naming, *(entry for entry in entries if not entry.spec.patterns)]
    if not found:
        raise NotFound(_("No provider serves this model."), code="unknown_model")
    return [(entry, model) for entry in found]


def _chatting(entries: Sequence[Entry] | None) -> list[Entry]:
    known = provider_table.table() if entries is None else entries
    return [
        entry
        for entry in known
        if entry.is_usable and provider_sources.abilities(entry.spec)["chat"]
    ]


def opened(entry: Entry, model: str) -> Upstream:
    """A provider as an upstream. Raises ``TierDown`` where it cannot chat or be called."""
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
        family=_family(entry),
        headers=chat_headers(speaks, entry.key),
    )


def _family(entry: Entry) -> str:
    spec = entry.spec
    is_elsewhere = spec.base_url.rstrip("/") not in ("", spec.service.base_url.rstrip("/"))
    if spec.kind != COMPATIBLE and not is_elsewhere:
        return spec.kind
    # A name alone does not make a server take what the real one takes.
    return "" if takes_system_anywhere(entry.name) else entry.name
