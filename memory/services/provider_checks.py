"""Trying a provider for real: small calls, one of each kind that it can answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from django.utils.translation import gettext as _

from engine.errors import EngineError
from engine.net.client import Limits
from engine.net.strict_json import Json
from engine.providers.speech import SPEECH, ProviderProtocol, chat_headers, chat_url
from engine.types import Purpose
from memory import provider_sources, wiring
from memory.principal import Principal
from memory.provider_sources import Named
from memory.provider_table import Entry
from memory.services import providers

LIMITS: Final = Limits(connect_s=5.0, total_s=10.0, retries=0, max_bytes=8 << 20)
WITHOUT_LIST: Final = frozenset({ProviderProtocol.COHERE})
"""Protocols whose chats have no list of models beside them."""
UNNAMED: Final = "default"
"""What a server is asked for that has one model only."""
What = Literal["models", "embedding", "rerank"]


@dataclass(frozen=True, slots=True)
class Check:
    """One call that was made. ``code`` is empty after a success."""

    what: What
    ok: bool
    latency_ms: float
    model: str = ""
    dimensions: int | None = None
    count: int | None = None
    code: str = ""
    detail: str = ""

    @property
    def error(self) -> str:
        """What went wrong, in the reader's language; empty after a success."""
        return "" if self.ok else explain_code(self.code, self.detail)


def check(principal: Principal, reference: str, *, model: str | None = None) -> list[Check]:
    """Ask a provider for its models, an embedding and a ranking, as far as it has them.

    One that is switched off is tried as well. ``model`` is the embedding model to try; without it
    that of the settings, or the first of the catalogue. Stops at the first failure. Raises
    ``NotFound``.
    """
    entry = providers.get(principal, reference)
    entry = replace(entry, spec=replace(entry.spec, enabled=True))
    done: list[Check] = []
    for what, call in _calls(entry, model):
        done.append(_timed(what, call))
        if not done[-1].ok:
            break
    return done


Call = Callable[[], Check]


def _calls(entry: Entry, model: str | None) -> list[tuple[What, Call]]:
    if entry.problems:
        return [("models", lambda: Check("models", False, 0, code="provider_off"))]
    speaks = entry.spec.speaks
    calls: list[tuple[What, Call]] = []
    if SPEECH[speaks].chat is not None and speaks not in WITHOUT_LIST:
        calls.append(("models", lambda: _models(entry)))
    chosen = wiring.settings()
    service = entry.spec.service
    embedding = model or _named(entry, chosen.embedding_provider_model)
    embedding = embedding or next((known.id for known in service.embedding_models), "")
    rerank = _named(entry, chosen.rerank_provider_model) or next(iter(service.rerank_models), "")
    if speaks is ProviderProtocol.TEI:
        embedding = embedding or UNNAMED
    if embedding and SPEECH[speaks].embedding is not None:
        calls.append(("embedding", lambda: _embedding(Named(entry, embedding))))
    if rerank and SPEECH[speaks].rerank is not None:
        calls.append(("rerank", lambda: _rerank(Named(entry, rerank))))
    return calls


def _named(entry: Entry, provider_model: str | None) -> str:
    parts = provider_sources.split(provider_model)
    return parts[1] if parts and parts[0] == entry.name else ""


def _timed(what: What, call: Call) -> Check:
    start = time.monotonic()
    try:
        found = call()
    except EngineError as error:
        found = Check(what, False, 0, code=error.code, detail=str(error))
    return replace(found, latency_ms=round((time.monotonic() - start) * 1000, 1))


def _models(entry: Entry) -> Check:
    spec = entry.spec
    url = chat_url(spec.url, spec.speaks)
    headers = chat_headers(spec.speaks, entry.key)
    answer = wiring.http_client().get_json(f"{url}/models", headers=headers, limits=LIMITS)
    count = _count(answer)
    if count is None:
        return Check("models", False, 0, code="invalid_response")
    return Check("models", True, 0, count=count)


def _count(answer: Json) -> int | None:
    """How many models a list has; None for what is no list of models."""
    listed = answer.get("data") if isinstance(answer, dict) else answer
    return len(listed) if isinstance(listed, list) else None


def _embedding(named: Named) -> Check:
    endpoint = provider_sources.embedding_endpoint(named)
    # Without what the catalogue says: the answer is to tell.
    source = provider_sources.bare_source(endpoint, wiring.http_client())
    rows = source.embed(["memory"], purpose=Purpose.QUERY)
    return Check("embedding", True, 0, model=named.model, dimensions=rows.shape[1])


def _rerank(named: Named) -> Check:
    from engine.rerank.remote import RemoteReranker

    endpoint = provider_sources.rerank_endpoint(named)
    health = RemoteReranker(endpoint, client=wiring.http_client()).health()
    code = str(health.detail.get("code") or "")
    return Check("rerank", health.available, 0, model=named.model, code=code, detail=health.reason)


def explain_code(code: str, detail: str = "") -> str:
    """Why a provider does not answer as it should."""
    texts = {
        "no_key": _("The provider refuses the key, or there is none."),
        "auth_failed": _("The provider refuses the key, or there is none."),
        "provider_key": _("The provider has no key."),
        "provider_off": _("The provider is switched off or not set up to its end."),
        "rate_limited": _("The provider asks us to slow down."),
        "timeout": _("The provider did not answer in time."),
        "connect_failed": _("The provider cannot be reached."),
        "tls_failed": _("The secure connection to the provider failed."),
        "invalid_response": _("The provider sent an answer that cannot be used."),
        "response_too_large": _("The provider sent an answer that cannot be used."),
        "url_blocked": _("The address of the provider is not allowed."),
    }
    failed = _("The provider failed.")
    return texts.get(code) or f"{failed} {detail}".strip()
