"""Trying the services of vaults for real: one small call, of words that belong to nobody."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from django.utils.translation import gettext as _

from engine.errors import EmbeddingFailed, RerankFailed
from engine.net.errors import HttpFailed
from engine.protocols import EmbeddingSource, Reranker, TextGenerator
from engine.types import Candidate, Passage, PassageKind, Purpose
from engine.vault.ask import Evidence, ask
from engine.vault.embedding import told as embedding_error
from engine.vault.errors import VaultError
from engine.vault.search import told as rerank_error
from memory import vault_texts, vault_wiring
from memory.errors import NotFound
from memory.principal import Principal
from memory.services import access
from memory.vault_services import Remote, ServiceName

QUESTION: Final = "Which colour is the door?"
NOTES: Final = ("The door is green.", "The window is open.")


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """One call that was made. ``code`` and ``reason`` are those of vaults, empty after a success.

    ``status`` is what HTTP said when it failed, ``dimensions`` the length of the vector that came.
    """

    name: ServiceName
    ok: bool
    latency_ms: float
    model: str
    host: str
    dimensions: int | None = None
    code: str = ""
    reason: str = ""
    error: str = ""
    status: int | None = None


def check(principal: Principal, name: ServiceName) -> ServiceCheck:
    """Ask a service that is in force once, without a further attempt. Nothing of a vault is sent.

    Raises ``NotFound`` when there is none.
    """
    access.require(principal, "manage")
    chosen = vault_wiring.services().named(name)
    if chosen is None:
        raise NotFound(_("No such service is chosen for vaults."))
    done = ServiceCheck(name, True, 0, chosen.model, chosen.host)
    start = time.monotonic()
    try:
        limits = replace(vault_wiring.limits(), retries=0)
        done = _CALLS[name](done, vault_wiring.trial(chosen, limits))
    except VaultError as error:
        message = vault_texts.told(error).message
        done = replace(done, ok=False, code=error.code, reason=error.reason, error=message)
        done = replace(done, status=_status(error))
    return replace(done, latency_ms=round((time.monotonic() - start) * 1000, 1))


def _status(error: BaseException | None) -> int | None:
    """What HTTP said, where that was the cause."""
    while error is not None and not isinstance(error, HttpFailed):
        error = error.__cause__
    return error.status if error is not None else None


def _embedding(done: ServiceCheck, remote: Remote) -> ServiceCheck:
    try:
        rows = cast(EmbeddingSource, remote).embed([QUESTION], purpose=Purpose.QUERY)
    except EmbeddingFailed as error:
        raise embedding_error(error) from error
    return replace(done, dimensions=int(rows.shape[1]))


def _rerank(done: ServiceCheck, remote: Remote) -> ServiceCheck:
    given = [(Candidate(n, n, 0.0), _passage(n, text)) for n, text in enumerate(NOTES, 1)]
    try:
        cast(Reranker, remote).rerank(QUESTION, given)
    except RerankFailed as error:
        raise rerank_error(error) from error
    return done


def _generation(done: ServiceCheck, remote: Remote) -> ServiceCheck:
    evidence = [Evidence(f"S{n}", "", text) for n, text in enumerate(NOTES, 1)]
    ask(QUESTION, evidence, cast(TextGenerator, remote))
    return done


def _passage(number: int, text: str) -> Passage:
    return Passage(
        id=number,
        kind=PassageKind.CARD,
        parent=str(number),
        ordinal=0,
        owner=0,
        title="",
        body=text,
        meta="",
        text_hash="",
        parent_tokens=0,
    )


_CALLS: Final[Mapping[ServiceName, Callable[[ServiceCheck, Remote], ServiceCheck]]] = {
    "embedding": _embedding,
    "generation": _generation,
    "rerank": _rerank,
}
