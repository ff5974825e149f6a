"""Answering a question from a vault, with citations that exist."""

from __future__ import annotations

import time
from dataclasses import dataclass

from engine.vault.ask import Asked, Evidence, ask
from engine.vault.errors import VaultError
from memory import vault_wiring
from memory.principal import Principal
from memory.services import audit
from memory.services.vaults import access, searching
from memory.services.vaults.access import Watch
from memory.services.vaults.searching import SearchRequest, SearchView


@dataclass(frozen=True, slots=True)
class AskView:
    """The answer, and the search that it is drawn from."""

    search: SearchView
    asked: Asked


def answer(principal: Principal, request: SearchRequest) -> AskView:
    """Search, and have the configured service write an answer from what was found.

    Nothing but the question and the chunks found is sent, and nothing at all when there are
    none. A lock, the end of a grant or a change of the vault meanwhile suppresses the answer.
    Raises ``VaultError``, ``generation_not_configured`` among them.
    """
    started = time.perf_counter()
    vault = access.find(principal, request.vault, "reader")
    # First, so that another choice of the service after this is seen.
    watch = Watch(principal, vault)
    with vault_wiring.watching(watch):
        view, asked, host = _asked(watch, request)
    cited = {item.label: item.chunk.asset for item in view.found}
    audit.record(
        principal,
        "vault.ask",
        owner=vault.owner,
        ids=dict.fromkeys(cited.values()),
        duration_ms=(time.perf_counter() - started) * 1000,
        detail={
            "vault": str(vault.uid),
            "cited": len(asked.answer.citations),
            "host": host if view.found else "",
        },
    )
    return AskView(view, asked)


def _asked(watch: Watch, request: SearchRequest) -> tuple[SearchView, Asked, str]:
    """What was found, what was written from it, and the host that writes."""
    generator, host = vault_wiring.generator(watch.vault), vault_wiring.generation_host()
    if generator is None:
        raise VaultError(
            "No service that writes answers is configured: choose one for vaults, in the studio "
            "or as [rag.generation] in the file.",
            code="generation_not_configured",
        )
    view = searching.look(watch, request)
    evidence = [
        Evidence(item.label, item.chunk.passage.title, item.chunk.passage.body)
        for item in view.found
    ]
    return view, ask(request.query, evidence, generator, check=watch), host
