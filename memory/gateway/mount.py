"""``/v1``: the ASGI application, which lives as long as the server."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from django.conf import settings

from memory.asgi import Receive, Scope, Send, header, is_own_host
from memory.gateway.admissions import GRACE_S, Admissions, Admit
from memory.gateway.arrivals import Arrivals
from memory.gateway.chats import PATHS, Chats, Planner
from memory.gateway.connection import while_connected
from memory.gateway.embeddings import Embeddings
from memory.gateway.incoming import Gone, Incoming, discard, incoming
from memory.gateway.models import Models
from memory.gateway.passing import Passing
from memory.gateway.recorder import Recorder
from memory.gateway.refusals import Refusal
from memory.gateway.relay import refuse
from memory.service_threads import ServiceThreads
from memory.services.gateway.admission import Admission, admit
from memory.services.gateway.planning import plan

if TYPE_CHECKING:
    from engine.net.streaming import StreamingClient

logger = logging.getLogger("memory.gateway")

ADMITTING: Final = 4
CLOSE_WITHIN_S: Final = 0.5
EMBEDDING: Final = 2
AHEAD: Final = 2
COUNT_TOKENS: Final = "/v1/messages/count_tokens"
MODELS: Final = "/v1/models"
EMBEDDINGS: Final = "/v1/embeddings"

Answer = Callable[[Incoming, Receive, Send], Awaitable[None]]
Admitted = Callable[[Admission, Incoming, Receive, Send], Awaitable[None]]


class Gateway:
    """Answers clients of OpenAI and Anthropic, with memory in between."""

    def __init__(
        self, *, admit: Admit = admit, planner: Planner = plan, grace_s: float = GRACE_S
    ) -> None:
        self._threads = {
            "admit": ServiceThreads(ADMITTING, name="gateway-admit"),
            "memory": ServiceThreads(settings.MEMORY_STUDIO_THREADS, name="gateway-memory"),
            "embed": ServiceThreads(EMBEDDING, name="gateway-embed"),
            "ahead": ServiceThreads(AHEAD, name="gateway-ahead"),
        }
        self._admissions = Admissions(self._threads["admit"], admit, grace_s=grace_s)
        self._planner = planner
        self._recorder = Recorder()
        self._routes: Mapping[tuple[str, str], Answer] | None = None
        self._client: StreamingClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        asked = incoming(scope)
        try:
            await self._answered(scope, asked, receive, send)
        except Refusal as error:
            await refuse(send, error, asked.dialect)
        except Gone:
            return

    def start(self) -> None:
        """Nothing: it starts with its first client."""

    def stop(self) -> None:
        """Close connections, write down the receipts that wait, and let go of the threads."""
        if self._client is not None and self._loop is not None:
            closing = asyncio.run_coroutine_threadsafe(self._client.close(), self._loop)
            with suppress(TimeoutError):
                closing.result(CLOSE_WITHIN_S)
        self._recorder.close()
        for threads in self._threads.values():
            threads.close()

    async def _answered(self, scope: Scope, asked: Incoming, receive: Receive, send: Send) -> None:
        try:
            answer = self._route(scope, asked)
        except Refusal:
            await discard(receive)
            raise
        await answer(asked, receive, send)

    def _route(self, scope: Scope, asked: Incoming) -> Answer:
        if not is_own_host(header(scope, b"host")):
            raise Refusal(421, "foreign_host", "The studio is not called by this host name.")
        if self._routes is None:
            # The client belongs to the loop of the server, which runs by now.
            self._routes = self._made()
        path = asked.path
        if path.startswith(f"{MODELS}/"):
            path = f"{MODELS}/*"
        answer = self._routes.get((asked.method, path))
        if answer is not None:
            return answer
        allowed = [method for method, known in self._routes if known == path]
        if allowed:
            allow = ((b"allow", ", ".join(allowed).encode()),)
            raise Refusal(405, "method_not_allowed", "Not with this method.", allow)
        raise Refusal(404, "not_found", f"There is nothing at {asked.path}.")

    def _made(self) -> dict[tuple[str, str], Answer]:
        from engine.net.proxies import Proxies
        from engine.net.streaming import StreamingClient

        self._loop = asyncio.get_running_loop()
        client = self._client = StreamingClient(proxies=Proxies(None, os.environ))
        chats = Chats(client, self._threads["memory"], self._recorder, planner=self._planner)
        passing = Passing(client)
        models = Models(client, self._threads["embed"])
        embeddings = Embeddings(passing, self._threads["embed"])

        arrivals = Arrivals(self._admissions, self._threads["ahead"])

        async def chat(asked: Incoming, receive: Receive, send: Send) -> None:
            admitted, made = await arrivals.chat(asked, receive)
            await while_connected(receive, chats.answer(admitted, made, send))

        def admitted(answer: Admitted) -> Answer:
            async def answered(asked: Incoming, receive: Receive, send: Send) -> None:
                await answer(await arrivals.caller(asked, receive), asked, receive, send)

            return answered

        return {
            **{("POST", path): chat for path in PATHS},
            ("POST", COUNT_TOKENS): admitted(passing.answer),
            ("POST", EMBEDDINGS): admitted(embeddings.answer),
            ("GET", MODELS): admitted(models.every),
            ("GET", f"{MODELS}/*"): admitted(models.one),
        }
