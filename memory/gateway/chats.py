"""A chat on its way: admitted, given memories, asked upstream, passed back, and accounted for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from engine.chat.bodies import Body
from engine.chat.bodies import Protocol as Spoken
from engine.chat.callers import session_of, wants_no_memory
from engine.chat.inject import Aim
from engine.chat.reading import is_said_before, own_words, request_text
from engine.net.errors import HttpFailed
from engine.net.streaming import Incoming as Answer
from engine.net.streaming import StreamingClient, StreamLimits
from engine.providers.speech import ChatProtocol
from memory.asgi import Send
from memory.gateway.headers import Headers
from memory.gateway.incoming import Incoming
from memory.gateway.passing import packed, places
from memory.gateway.recorder import Recorder
from memory.gateway.refusals import Refusal
from memory.gateway.relay import UNREACHED, Outgoing, Reply, ask, refusal_for, refuse
from memory.service_threads import ServiceThreads
from memory.services.gateway import learning
from memory.services.gateway.admission import Admission
from memory.services.gateway.learning import Turn
from memory.services.gateway.planning import Ask, Plan, State, plan, put_in
from memory.services.gateway.receipts import Outcome, Receipt
from memory.services.retrieval import Purpose
from memory.services.upstreams import Upstream

logger = logging.getLogger("memory.injection")

PATHS: Final[Mapping[str, Spoken]] = {
    "/v1/chat/completions": Spoken.CHAT,
    "/v1/responses": Spoken.RESPONSES,
    "/v1/messages": Spoken.MESSAGES,
}
SPOKEN: Final[Mapping[Spoken, ChatProtocol]] = {
    Spoken.CHAT: ChatProtocol.OPENAI,
    Spoken.RESPONSES: ChatProtocol.OPENAI,
    Spoken.MESSAGES: ChatProtocol.ANTHROPIC,
}


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat that was let in. ``raw`` is its body as it came."""

    incoming: Incoming
    protocol: Spoken
    raw: bytes
    body: Body
    model: str


class Planner(Protocol):
    """What ``plan`` is."""

    def __call__(self, admission: Admission, ask: Ask, *, purpose: Purpose) -> Plan:
        """What memory adds to a chat."""
        ...


class Chats:
    """Answers chats of all three protocols."""

    def __init__(
        self,
        client: StreamingClient,
        threads: ServiceThreads,
        recorder: Recorder,
        *,
        planner: Planner = plan,
    ) -> None:
        self._client = client
        self._planner = planner
        self._threads = threads
        self._recorder = recorder

    async def answer(self, admitted: Admission, chat: Chat, send: Send) -> None:
        """Answer one chat and leave its receipt, however it ends."""
        receipt = Receipt(
            admitted,
            protocol=chat.protocol.value,
            model=chat.model,
            session=session_of(chat.incoming.headers, chat.body),
            is_stream=chat.body.get("stream") is True,
        )
        try:
            await self._answer(chat, receipt, send)
        except Refusal as error:
            receipt.status, receipt.outcome = error.status, Outcome.UNREACHED
            await refuse(send, error, chat.incoming.dialect, receipt_headers(receipt))
        finally:
            receipt.mark("total")
            self._recorder.put(receipt)

    async def _answer(self, chat: Chat, receipt: Receipt, send: Send) -> None:
        found = places(receipt.admission, chat.model, SPOKEN[chat.protocol])
        receipt.plan = await self._plan(chat, receipt, found[0])
        receipt.mark("ready")
        answer = await self._asked(chat, receipt, found)
        receipt.mark("upstream")
        receipt.status = answer.status
        is_read = learning.wants_replies(receipt.admission) and answer.status == 200
        reply = Reply(answer, receipt.provider, dialect=chat.incoming.dialect, is_read=is_read)
        try:
            await reply.pass_on(send, receipt_headers(receipt))
            receipt.outcome = Outcome.OK if answer.status < 400 else Outcome.REFUSED
        except HttpFailed:
            # What could be told has been told.
            receipt.outcome = Outcome.BROKEN
        finally:
            if answer.status == 200:
                receipt.turn = _turn(chat, reply.text, receipt.session)

    async def _plan(self, chat: Chat, receipt: Receipt, place: Upstream) -> Plan:
        """What memory adds, within its budget; its trouble is never the chat's."""
        admitted = receipt.admission
        opted_out = wants_no_memory(chat.incoming.headers)
        wanted = Ask(chat.body, _aim(chat, place), receipt.session, opted_out)
        if opted_out or not admitted.is_injecting:
            return self._planner(admitted, wanted, purpose="chat")
        try:
            async with asyncio.timeout(admitted.chat.budget_ms / 1000):
                return await self._threads.run(
                    lambda left: self._planner(admitted, replace(wanted, left=left), purpose="chat")
                )
        except TimeoutError:
            logger.warning("memory.injection.late trace=%s", receipt.id)
            return Plan(State.LATE)
        except Exception:
            logger.exception("memory.injection.failed trace=%s", receipt.id)
            return Plan(State.FAILED)

    async def _asked(self, chat: Chat, receipt: Receipt, found: Sequence[Upstream]) -> Answer:
        """The answer of the first upstream that can be reached. Raises ``Refusal``."""
        limits = StreamLimits(idle_s=receipt.admission.chat.idle_seconds)
        for number, place in enumerate(found, 1):
            if number > 1:
                receipt.plan = _again(receipt, chat, place)
            receipt.provider = place.provider
            try:
                return await ask(self._client, _outgoing(chat, receipt.plan, place), limits)
            except HttpFailed as error:
                if error.code not in UNREACHED or number == len(found):
                    raise refusal_for(error, place.provider) from None
                logger.warning("the provider %s cannot be reached", place.provider)
        raise AssertionError("there is at least one place")


def receipt_headers(receipt: Receipt) -> Headers:
    """What the client is told about memory."""
    return [
        (b"x-memory-trace-id", str(receipt.id).encode()),
        (b"x-memory-injected", b"%d" % len(receipt.injected)),
        (b"x-memory-tokens", b"%d" % receipt.tokens),
    ]


def _turn(chat: Chat, replied: str, session: str) -> Turn:
    said = own_words(request_text(chat.body))
    return Turn(said, replied, session, chat.model, is_said_before=is_said_before(chat.body))


def _aim(chat: Chat, place: Upstream) -> Aim:
    return Aim(chat.protocol, place.family, place.model)


def _again(receipt: Receipt, chat: Chat, place: Upstream) -> Plan:
    """The same memories where another upstream wants them."""
    before = receipt.plan
    if before.injected is None:
        return before
    made = put_in(receipt.admission, chat.body, _aim(chat, place), before.notes)
    return replace(before, injected=made)


def _outgoing(chat: Chat, planned: Plan, place: Upstream) -> Outgoing:
    body, content = chat.body, chat.raw
    if planned.injected is not None:
        body = planned.injected.body
    if place.model != chat.model:
        body = {**body, "model": place.model}
    if body is not chat.body:
        content = packed(body)
    path = chat.incoming.path.removeprefix("/v1")
    return Outgoing(place, path, chat.incoming.query, chat.incoming.headers, content)
