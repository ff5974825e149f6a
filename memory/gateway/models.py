"""``GET /v1/models``: every model that can be asked for, each under a name that leads to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.chat.bodies import objects, parse
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.streaming import StreamingClient, StreamLimits
from memory.asgi import Receive, Send
from memory.errors import ServiceError
from memory.gateway.headers import upstream_headers
from memory.gateway.incoming import Incoming
from memory.gateway.passing import SPOKEN
from memory.gateway.refusals import Dialect, Refusal
from memory.gateway.relay import send_json
from memory.service_threads import ServiceThreads
from memory.services.gateway import admission, local_embeddings
from memory.services.gateway.admission import Admission
from memory.services.upstreams import Upstream

logger = logging.getLogger("memory.gateway")

LIMITS: Final = StreamLimits(connect_s=3, idle_s=5)
MAX_BYTES: Final = 8 * 2**20
KEPT_S: Final = 60.0
EPOCH: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Model:
    """One model: the id to ask for it by, and who has it."""

    id: str
    owner: str
    created: int = 0


class Models:
    """Asks every upstream for its models, and remembers what they said for a minute."""

    def __init__(self, client: StreamingClient, threads: ServiceThreads) -> None:
        self._client = client
        self._threads = threads
        self._known: dict[tuple[str, str], tuple[float, list[Model]]] = {}

    async def every(
        self, admitted: Admission, asked: Incoming, receive: Receive, send: Send
    ) -> None:
        """Every model, in the shape of the client's protocol."""
        found = await self._all(admitted, asked.dialect)
        await send_json(send, 200, _list_body(found, asked.dialect))

    async def one(self, admitted: Admission, asked: Incoming, receive: Receive, send: Send) -> None:
        """The model of one id."""
        name = asked.path.removeprefix("/v1/models/")
        listed = await self._all(admitted, asked.dialect)
        found = next((model for model in listed if model.id == name), None)
        found = found or await self._behind(admitted, name)
        if found is None:
            raise Refusal(404, "model_not_found", f"There is no model “{name}”.")
        await send_json(send, 200, _body(found, asked.dialect))

    async def _behind(self, admitted: Admission, name: str) -> Model | None:
        """A model named with its provider, which leads there too where its own name does."""
        provider, _slash, own = name.partition("/")
        for upstream in admission.upstreams_of(admitted):
            if upstream.provider == provider:
                for model in await self._of(upstream):
                    if model.id == own:
                        return Model(name, model.owner, model.created)
        return None

    async def _all(self, admitted: Admission, dialect: Dialect) -> list[Model]:
        upstreams = [
            one for one in admission.upstreams_of(admitted) if one.protocol is SPOKEN[dialect]
        ]
        answers = await asyncio.gather(*(self._of(one) for one in upstreams))
        found: dict[str, Model] = {}
        for upstream, models in zip(upstreams, answers, strict=True):
            for model in models:
                named = _named(admitted, dialect, upstream, model)
                found.setdefault(named.id, named)
        if dialect is Dialect.OPENAI:
            own = await self._threads.run(lambda _stop: local_embeddings.model_names())
            found.update({name: Model(name, "memory-studio") for name in own})
        return list(found.values())

    async def _of(self, upstream: Upstream) -> Sequence[Model]:
        """The models of one upstream; none when it does not tell."""
        key = (upstream.provider, upstream.base_url)
        moment, known = self._known.get(key, (0.0, []))
        if known and time.monotonic() - moment < KEPT_S:
            return known
        try:
            found = await self._asked(upstream)
        except (HttpFailed, UrlBlocked) as error:
            logger.warning("the provider %s does not tell its models: %s", key[0], error.code)
            return known
        self._known[key] = (time.monotonic(), found)
        return found

    async def _asked(self, upstream: Upstream) -> list[Model]:
        headers = upstream_headers({}, upstream.headers)
        answer = await self._client.send("GET", f"{upstream.base_url}/models", b"", headers, LIMITS)
        try:
            body = parse(await answer.read(MAX_BYTES)) or {}
        finally:
            await answer.close()
        found = []
        for row in objects(body.get("data")):
            name, created = row.get("id"), row.get("created")
            if isinstance(name, str):
                moment = created if isinstance(created, int) else 0
                found.append(Model(name, upstream.provider, moment))
        return found


def _named(admitted: Admission, dialect: Dialect, upstream: Upstream, model: Model) -> Model:
    """A model under its own name where that leads to it, else behind its provider's."""
    try:
        first = admission.routes(admitted, model.id, SPOKEN[dialect])[0]
        if (first.provider, first.model) == (upstream.provider, model.id):
            return model
    except ServiceError:
        pass
    return Model(f"{upstream.provider}/{model.id}", model.owner, model.created)


def _list_body(models: Sequence[Model], dialect: Dialect) -> dict[str, Any]:
    rows = [_body(model, dialect) for model in models]
    if dialect is Dialect.OPENAI:
        return {"object": "list", "data": rows}
    ends = {"first_id": models[0].id, "last_id": models[-1].id} if models else {}
    return {"data": rows, "has_more": False, "first_id": None, "last_id": None, **ends}


def _body(model: Model, dialect: Dialect) -> dict[str, Any]:
    if dialect is Dialect.OPENAI:
        fields = {"created": model.created, "owned_by": model.owner}
        return {"id": model.id, "object": "model", **fields}
    return {"type": "model", "id": model.id, "display_name": model.id, "created_at": EPOCH}
