"""What is done for a client only as long as the client is there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from memory.asgi import Receive


async def while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, and cancel it when the client leaves. The body has been read by now."""
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_leaving(receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
    finally:
        watch.cancel()
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _leaving(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
