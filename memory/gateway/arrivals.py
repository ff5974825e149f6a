"""How requests come in: their caller is admitted first, but a chat of a known caller loses no time.

A chat of a caller who was admitted a moment ago is read first, and its turn embedded while the
database is asked about the caller. Nothing is answered and nothing leaves the machine before that.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from engine.chat.bodies import parse
from memory.asgi import Receive
from memory.gateway.admissions import Admissions
from memory.gateway.chats import PATHS, Chat
from memory.gateway.incoming import Incoming, discard, read_body
from memory.gateway.passing import model_of
from memory.gateway.refusals import Refusal, no_object
from memory.service_threads import ServiceThreads
from memory.services.gateway.admission import Admission
from memory.services.gateway.anticipation import anticipate


class Arrivals:
    """Admits callers and reads chats."""

    def __init__(self, admissions: Admissions, threads: ServiceThreads) -> None:
        self._admissions = admissions
        self._threads = threads
        self._begun: set[asyncio.Task[None]] = set()

    async def caller(self, asked: Incoming, receive: Receive) -> Admission:
        """Who asks. Raises ``Refusal``, when the rest of the request has been taken in."""
        try:
            return await self._admissions.admit(asked.secret)
        except Refusal:
            await discard(receive)
            raise

    async def chat(self, asked: Incoming, receive: Receive) -> tuple[Admission, Chat]:
        """Who chats, and the chat. Raises ``Refusal`` and ``Gone``."""
        known = self._admissions.known(asked.secret)
        if known is None:
            admitted = await self.caller(asked, receive)
            return admitted, await _read(asked, receive)
        try:
            chat = await _read(asked, receive)
            # Begun before the database is asked: it takes longer.
            self._begin(known, chat)
        finally:
            # Who may not come in is told this before what is wrong with the chat.
            admitted = await self._admissions.admit(asked.secret)
        return admitted, chat

    def _begin(self, known: Admission, chat: Chat) -> None:
        task = asyncio.ensure_future(self._anticipate(known, chat))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def _anticipate(self, known: Admission, chat: Chat) -> None:
        # Its trouble is that of the retrieval, which comes by the same way and tells it.
        with suppress(Exception):
            await self._threads.run(
                lambda _stop: anticipate(known, chat.incoming.headers, chat.body)
            )


async def _read(asked: Incoming, receive: Receive) -> Chat:
    raw = await read_body(receive, asked.headers)
    body = parse(raw)
    if body is None:
        raise no_object()
    return Chat(asked, PATHS[asked.path], raw, body, model_of(body))
