"""A request that a web looks at before it decides who answers it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import TypeVar

from memstudio.bridge import Message, Receive

T = TypeVar("T")


class Gone(Exception):
    """The client has left."""


class Incoming:
    """What was read of the request is kept until it is passed on, or answered here."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: deque[Message] = deque()
        self._is_whole = asyncio.Event()
        self._leaving: asyncio.Task[None] | None = None

    @property
    def has_body(self) -> bool:
        """Whether there is a body; known after the first look."""
        return not self._is_whole.is_set() or any(each.get("body") for each in self._read)

    async def look(self) -> None:
        """Read the first piece of the body. Raises ``Gone``."""
        if not self._read:
            self._read.append(await self._next())

    async def whole(self, most: int) -> bytes | None:
        """The whole body; None when it is larger. Raises ``Gone``."""
        size = 0
        while not self._is_whole.is_set():
            self._read.append(await self._next())
            size += len(self._read[-1].get("body", b""))
            if size > most:
                return None
        return b"".join(each.get("body", b"") for each in self._read)

    async def receive(self) -> Message:
        """For an application that answers here: everything, as if nothing had been read."""
        return self._read.popleft() if self._read else await self._receive()

    async def body(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ``Gone``."""
        while self._read or not self._is_whole.is_set():
            message = self._read.popleft() if self._read else await self._next()
            if piece := message.get("body"):
                yield piece

    async def while_there(self, work: Awaitable[T]) -> T:
        """The result of work that is cancelled when the client leaves. Raises ``Gone``."""
        task = asyncio.ensure_future(work)
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._notice_leaving())
        try:
            await asyncio.wait({task, self._leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Gone
            return await task
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def end(self) -> None:
        """Watch the client no more."""
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Gone
        if not message.get("more_body", False):
            self._is_whole.set()
        return message

    async def _notice_leaving(self) -> None:
        # Until then whoever reads the body notices.
        await self._is_whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
