"""``POST /v1/embeddings``: by the studio's own source, or passed on to who has the model."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError

from engine.chat.bodies import Body, parse
from memory.asgi import Receive, Send
from memory.errors import ServiceError
from memory.gateway.incoming import Incoming, read_body
from memory.gateway.passing import Passing
from memory.gateway.refusals import no_database, no_object, refusal_of
from memory.gateway.relay import send_json
from memory.service_threads import ServiceThreads
from memory.services.gateway import local_embeddings
from memory.services.gateway.admission import Admission


class Embeddings:
    """Answers embedding requests."""

    def __init__(self, passing: Passing, threads: ServiceThreads) -> None:
        self._passing = passing
        self._threads = threads

    async def answer(
        self, admitted: Admission, asked: Incoming, receive: Receive, send: Send
    ) -> None:
        """Embed here what asks for our own model, and pass on the rest."""
        raw = await read_body(receive, asked.headers)
        body = parse(raw)
        if body is None:
            raise no_object()
        try:
            own = await self._threads.run(lambda _stop: _embedded(body))
        except ServiceError as error:
            raise refusal_of(error) from None
        except DatabaseError:
            raise no_database() from None
        if own is not None:
            await send_json(send, 200, own)
            return
        await self._passing.pass_on(admitted, asked, raw, body, receive=receive, send=send)


def _embedded(body: Body) -> dict[str, Any] | None:
    ask = local_embeddings.asked(body)
    return None if ask is None else local_embeddings.embed(ask)
