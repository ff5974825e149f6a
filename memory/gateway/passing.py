"""Requests that only pass through: routed by their model, nothing added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.chat.bodies import Body, dumped, parse
from engine.net.errors import HttpFailed
from engine.net.streaming import StreamingClient, StreamLimits
from engine.providers.speech import ChatProtocol
from memory.asgi import Receive, Send
from memory.errors import ServiceError
from memory.gateway.connection import while_connected
from memory.gateway.incoming import Incoming, read_body
from memory.gateway.refusals import Dialect, Refusal, no_model, no_object, refusal_of
from memory.gateway.relay import UNREACHED, Outgoing, Reply, ask, refusal_for, refuse
from memory.services.gateway import admission
from memory.services.gateway.admission import Admission
from memory.services.upstreams import Upstream

SPOKEN: Final[Mapping[Dialect, ChatProtocol]] = {
    Dialect.OPENAI: ChatProtocol.OPENAI,
    Dialect.ANTHROPIC: ChatProtocol.ANTHROPIC,
}


def model_of(body: Body) -> str:
    """The model that a body names. Raises ``Refusal``."""
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise no_model()
    return model


def packed(body: Body) -> bytes:
    """A changed body as it is sent. Raises ``Refusal``."""
    try:
        return dumped(body)
    except ValueError:
        raise no_object() from None


def places(admitted: Admission, model: str, protocol: ChatProtocol) -> list[Upstream]:
    """Where a model can be asked, in order; at least one. Raises ``Refusal``."""
    try:
        return admission.routes(admitted, model, protocol)
    except ServiceError as error:
        raise refusal_of(error) from None


class Passing:
    """Passes requests on by the model they name."""

    def __init__(self, client: StreamingClient) -> None:
        self._client = client

    async def answer(
        self, admitted: Admission, asked: Incoming, receive: Receive, send: Send
    ) -> None:
        """Read the body and pass it on."""
        raw = await read_body(receive, asked.headers)
        body = parse(raw)
        if body is None:
            raise no_object()
        await self.pass_on(admitted, asked, raw, body, receive=receive, send=send)

    async def pass_on(
        self,
        admitted: Admission,
        asked: Incoming,
        raw: bytes,
        body: Body,
        *,
        receive: Receive,
        send: Send,
    ) -> None:
        """Pass a body on as long as the client is there."""
        model = model_of(body)
        found = places(admitted, model, SPOKEN[asked.dialect])
        outgoing = [
            Outgoing(
                place,
                asked.path.removeprefix("/v1"),
                asked.query,
                asked.headers,
                raw if place.model == model else packed({**body, "model": place.model}),
            )
            for place in found
        ]
        limits = StreamLimits(idle_s=admitted.chat.idle_seconds)
        await while_connected(receive, self._passed(outgoing, asked.dialect, limits, send))

    async def _passed(
        self, outgoing: list[Outgoing], dialect: Dialect, limits: StreamLimits, send: Send
    ) -> None:
        for number, one in enumerate(outgoing, 1):
            try:
                answer = await ask(self._client, one, limits)
            except HttpFailed as error:
                if error.code in UNREACHED and number < len(outgoing):
                    continue
                await refuse(send, refusal_for(error, one.upstream.provider), dialect)
                return
            except Refusal as error:
                await refuse(send, error, dialect)
                return
            try:
                reply = Reply(answer, one.upstream.provider, dialect=dialect, is_read=False)
                await reply.pass_on(send, [])
            except HttpFailed:
                # The head has been sent: the client sees that the body ends too early.
                return
            return
