"""The state of what puts candidates in order: fusion and rerank."""

from __future__ import annotations

from typing import Final

from django.conf import settings as django_settings
from django.utils.translation import gettext as _

from engine.types import Degraded
from memory.services.degraded import explain
from memory.services.status_types import Facts, TierState
from memory.stored_settings import Settings

RERANK_OFF: Final = "disabled"


def fusion_state(chosen: Settings, *, has_vectors: bool) -> TierState:
    """How the lists of a hybrid search become one."""
    facts = [(_("Rule"), _rule(chosen))]
    if chosen.fusion_weights:
        weights = (f"{name} {weight:g}" for name, weight in chosen.fusion_weights.items())
        facts.append((_("Weights"), ", ".join(weights)))
    facts.append((_("Relevance floor"), _floor(chosen)))
    if chosen.recency_weight or chosen.use_weight:
        prior = _("recency %(recency)s, use %(use)s") % {
            "recency": f"{chosen.recency_weight:g}",
            "use": f"{chosen.use_weight:g}",
        }
        facts.append((_("Priors"), prior))
    if has_vectors:
        return TierState("fusion", "on", chosen.fusion, "", tuple(facts))
    reason = _("There is one list only while no vectors can be searched: nothing to fuse.")
    return TierState("fusion", "warn", chosen.fusion, reason, tuple(facts), "one_list")


def _rule(chosen: Settings) -> str:
    if chosen.fusion == "rrf":
        return _("reciprocal ranks, k = %(k)s") % {"k": django_settings.MEMORY_RRF_K}
    return _("normalised scores")


def _floor(chosen: Settings) -> str:
    if chosen.relevance_floor == "auto":
        return _("as measured for the model")
    is_off = chosen.relevance_floor == "off"
    return _("off") if is_off else f"{chosen.relevance_floor:.3f}"


def rerank_state(chosen: Settings, off: Degraded | None) -> TierState:
    """The chosen reranker, and why it cannot run when it cannot."""
    kind = chosen.reranker
    if kind == "none":
        reason = _("Reranking is switched off.")
        return TierState("rerank", "off", "rerank", reason, code=RERANK_OFF)
    facts: Facts = ((_("Reranker"), kind),)
    if kind == "remote":
        kinds = {"seed": _("plain"), "cohere": "Cohere", "jina": "Jina", "tei": "TEI"}
        facts = (*facts, (_("Kind"), kinds.get(chosen.rerank_protocol, chosen.rerank_protocol)))
    if chosen.rerank_provider_model and kind in ("remote", "cross-encoder"):
        facts = (*facts, (_("Model"), chosen.rerank_provider_model))
    if off is None:
        return TierState("rerank", "on", kind, "", facts)
    return TierState("rerank", "warn", kind, _why_off(kind, off), facts, off.code)


def _why_off(kind: str, off: Degraded) -> str:
    if off.code == "not_installed" and kind == "late":
        return _("It needs a local embedding model that gives token vectors; none serves now.")
    if off.code == "not_installed" and kind == "cross-encoder":
        return _("No cross-encoder is installed; hits keep the order of the fusion.")
    return explain(off)
