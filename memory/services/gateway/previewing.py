"""The request that would be sent for a chat, without sending or counting anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.chat.bodies import Body, Protocol
from engine.chat.callers import session_of, wants_no_memory
from engine.chat.inject import Aim
from engine.providers.speech import ChatProtocol
from memory import wiring
from memory.errors import ServiceError
from memory.models import ApiKey
from memory.principal import Principal
from memory.services import access
from memory.services.gateway import admission
from memory.services.gateway.admission import Admission
from memory.services.gateway.planning import Ask, Plan, plan


@dataclass(frozen=True, slots=True)
class PreviewAsk:
    """A chat as a client would send it, and whose it would be. Names of ``headers`` in lower case.

    ``is_on`` previews as if memory was switched on.
    """

    body: Body
    protocol: Protocol = Protocol.CHAT
    owner: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_on: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be sent, to whom, and what memory did for it. ``provider`` is empty where none
    serves the model."""

    plan: Plan
    request: Body
    provider: str
    owner: ApiKey


def preview(principal: Principal, ask: PreviewAsk) -> Preview:
    """Plan a chat as the gateway does. Raises ``Invalid`` and ``NotFound``."""
    access.require(principal, "read")
    owner = access.read_owner(principal, ask.owner) or access.default_key()
    admitted = _admitted(owner, is_on=ask.is_on)
    # The reader acts, in the place of the owner.
    admitted = replace(admitted, principal=replace(principal, owner=owner.pk))
    model = str(ask.body.get("model") or "")
    family, name, provider = _place(admitted, model, ask.protocol)
    wanted = Ask(
        ask.body,
        Aim(ask.protocol, family, name),
        session_of(ask.headers, ask.body),
        wants_no_memory(ask.headers),
    )
    made = plan(admitted, wanted, purpose="preview")
    request = made.injected.body if made.injected else ask.body
    if name != model:
        request = {**request, "model": name}
    return Preview(made, request, provider, owner)


def _admitted(owner: ApiKey, *, is_on: bool) -> Admission:
    """What holds for chats of a key, whether or not it may chat."""
    admitted = admission.of_key(owner)
    if not is_on:
        return admitted
    memory = replace(wiring.settings(), enabled=True)
    owner.injection = ApiKey.Injection.ON
    return replace(admitted, memory=memory, key=owner)


def _place(admitted: Admission, model: str, protocol: Protocol) -> tuple[str, str, str]:
    """Family, name of the model there, and provider of who would be asked."""
    if not model:
        return "", "", ""
    speaks = ChatProtocol.ANTHROPIC if protocol is Protocol.MESSAGES else ChatProtocol.OPENAI
    try:
        first = admission.routes(admitted, model, speaks)[0]
    except ServiceError:
        return "", model, ""
    return first.family, first.model, first.provider
