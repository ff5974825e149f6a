"""Asking a vault in the studio: an answer whose citations open their source."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.http import HttpResponse

from engine.errors import InvalidQuery
from engine.vault.answer import INLINE, LABEL
from engine.vault.errors import VaultError
from memory import vault_texts
from memory.errors import from_engine
from memory.services.vaults import asking, lifecycle, searching
from memory.services.vaults.asking import AskView
from memory.vault_content_forms import QuestionForm
from memory.views._principal import StudioRequest
from memory.views._render import render_page
from memory.views._vaults import vault_page
from memory.views.vault_contents import scored

PAGE: Final = "memory/vault_ask.html"
PARTIALS: Final = {"vault-answer": "answer"}
VOID: Final = frozenset({"vault_locked", "source_changed", "cancelled", "not_authorized"})
"""Why an answer is not shown though it may have been written."""


@vault_page("GET", "POST")
def ask(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """The form for a question, and by POST its answer; no address holds either."""
    vault = lifecycle.get(request.principal, str(uid))
    context: dict[str, Any] = {"vault": vault, "form": QuestionForm(auto_id="ask-%s")}
    status = 200
    if request.method == "POST":
        form = context["form"] = QuestionForm(request.POST, auto_id="ask-%s")
        if form.is_valid():
            context |= _answered(request, form, str(uid))
        status = context.get("refused_status") or (form.status if form.errors else 200)
    found = searching.status(request.principal, str(uid))
    service = found.services.generation
    context |= {"status": found, "service": service, "is_unlocked": found.is_unlocked}
    return render_page(request, PAGE, context, partials=PARTIALS, status=status)


def _answered(request: StudioRequest, form: QuestionForm, vault: str) -> dict[str, Any]:
    try:
        view = asking.answer(request.principal, form.asked(vault))
    except InvalidQuery as error:
        form.absorb(from_engine(error))
        return {}
    except VaultError as error:
        refusal = vault_texts.told(error)
        return {
            "refused": refusal.message,
            "is_void": error.code in VOID,
            "refused_status": refusal.status,
        }
    cited = view.asked.answer.citations
    return {
        "asked": view.asked,
        "view": view.search,
        "pieces": pieces(view),
        "hits": [hit | {"is_cited": hit["found"].label in cited} for hit in scored(view.search)],
    }


def pieces(view: AskView) -> list[dict[str, Any]]:
    """The answer as text and citations in turn, so that nothing of it is ever markup."""
    known = {item.label: item for item in view.search.found}
    parts: list[dict[str, Any]] = []
    place, text = 0, view.asked.answer.text or ""
    for match in INLINE.finditer(text):
        parts.append({"text": text[place : match.start()]})
        parts += [{"found": known[label]} for label in LABEL.findall(match[0])]
        place = match.end()
    return [*parts, {"text": text[place:]}]
