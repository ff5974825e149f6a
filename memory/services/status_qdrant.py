"""The state of Qdrant as a tier."""

from __future__ import annotations

from django.utils.translation import gettext as _

from engine.errors import EngineError
from engine.types import Degraded, Health
from memory import qdrant_store
from memory.models import VectorIndex
from memory.services import qdrant
from memory.services.degraded import explain, explain_health
from memory.services.status_types import Facts, TierState
from memory.stored_settings import Settings

NAME = "Qdrant"


def qdrant_state(chosen: Settings, index: VectorIndex | None) -> TierState:
    """Whether Qdrant serves, by a real search; an outage that is known costs no time."""
    if not chosen.qdrant_enabled:
        return TierState("qdrant", "off", NAME, _("Qdrant is switched off."), code="disabled")
    facts = _facts(chosen)
    if not qdrant_store.is_on(chosen):
        code = "not_configured" if not chosen.qdrant_host else "not_chosen"
        reason = (
            explain(Degraded("qdrant", code, ""))
            if code == "not_configured"
            else _("Another vector store is chosen in the settings.")
        )
        return TierState("qdrant", "warn", NAME, reason, facts, code)
    if index is None:
        return TierState("qdrant", "warn", NAME, _("No memory has a vector yet."), facts, "empty")
    try:
        found = qdrant_store.store(index, chosen).state()
    except EngineError as error:
        reason = explain(Degraded("qdrant", error.code, str(error)))
        return TierState("qdrant", "error", NAME, reason, facts, error.code)
    return _with_health(found, facts, chosen, index)


def _with_health(found: Health, facts: Facts, chosen: Settings, index: VectorIndex) -> TierState:
    job = qdrant.building()
    if not found.available:
        code = str(found.detail.get("code", ""))
        if code == "qdrant_building":
            return TierState("qdrant", "warn", NAME, _building(job is not None), facts, code)
        reason = f"{explain_health(found)} {_('Searches use the index here.')}"
        return TierState("qdrant", "error", NAME, reason, facts, code)
    facts = (*facts, *_held(found))
    took, behind = found.detail.get("took_ms"), found.detail.get("behind")
    latency = float(took) if isinstance(took, int | float) else None
    if job is not None:
        return TierState("qdrant", "warn", NAME, _building(True), facts, "partial", latency)
    # Nothing is limited by the rest: searches see what is under way, one signature serves all.
    reason = _waiting(behind) or _other_model(chosen, index)
    return TierState("qdrant", "on", NAME, reason, facts, latency_ms=latency)


def _other_model(chosen: Settings, index: VectorIndex) -> str:
    held = qdrant.model_note(chosen, index)
    text = _("It holds vectors of %(model)s, not of the model named in its settings.")
    return text % {"model": held} if held else ""


def _facts(chosen: Settings) -> Facts:
    if not chosen.qdrant_host:
        return ()
    try:
        shown = qdrant_store.place(chosen).url
    except EngineError:
        shown = chosen.qdrant_host
    names = {"none": _("none"), "int8": "int8", "binary": _("binary")}
    kept = chosen.qdrant_quantization
    return ((_("Address"), shown), (_("Quantization"), names.get(kept, kept)))


def _held(found: Health) -> Facts:
    points, took = found.detail.get("points"), found.detail.get("took_ms")
    facts: Facts = ((_("Collection"), str(found.detail.get("collection", ""))),)
    if isinstance(points, int):
        facts = (*facts, (_("Points"), f"{points:,}"))
    shown = f"{took:.1f}" if isinstance(took, int | float) else ""
    return (*facts, (_("Search took"), _("%(ms)s ms") % {"ms": shown}))


def _building(is_at_work: bool) -> str:
    if is_at_work:
        return _("The collection is being built; until then searches use the index here.")
    return _("The collection is not built yet: “Reindex everything” builds it.")


def _waiting(behind: object) -> str:
    if not isinstance(behind, int) or behind == 0:
        return ""
    return _("%(count)s changes are on their way; searches see them already.") % {"count": behind}
