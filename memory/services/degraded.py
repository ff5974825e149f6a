"""Engine reasons in the words of the user's language: by their codes, never by their English."""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext as _

from engine.types import Degraded, Health

_RRF: Final = re.compile(r"rrf k=(\d+)")


def explain(item: Degraded) -> str:
    """What a tier that did not serve means for the reader."""
    if item.tier == "backend":
        return backend_reason(item.code, item.message)
    texts = _rerank_texts() if item.tier == "rerank" else _texts()
    return texts.get(item.code, item.message)


def explain_health(health: Health) -> str:
    """Why a tier is not healthy; an empty text when nothing is wrong.

    ``detail`` holds the code, and for some codes the name of the error.
    """
    if not health.reason:
        return ""
    code = str(health.detail.get("code") or "")
    text = _faults().get(code) or _texts().get(code) or health.reason
    return text % {"error": health.detail.get("error", "")} if code in _faults() else text


def backend_reason(code: str, message: str = "") -> str:
    """Why a memory backend does not serve."""
    texts = {
        "no_key": _("The memory backend refuses the key, or there is none."),
        "rate_limited": _("The memory backend asks us to slow down."),
        "timeout": _("The memory backend did not answer in time."),
        "unreachable": _("The memory backend cannot be reached."),
        "request_failed": _("The memory backend failed."),
        "invalid_response": _("The memory backend sent an answer that cannot be used."),
        "too_large": _("The text is longer than the memory backend keeps."),
        "url_blocked": _("The address of the memory backend is not allowed."),
        "outside_vault": _("A path would lead out of the vault."),
        "not_registered": _("There is no memory backend of this name."),
    }
    return texts.get(code, message or texts["request_failed"])


def note_text(note: str) -> str:
    """The note of a stage: a code of the engine, or the way two lists were fused."""
    if found := _RRF.fullmatch(note):
        return _("reciprocal ranks, k = %(k)s") % {"k": found[1]}
    if note == "scores":
        return _("normalised scores")
    return _texts().get(note, note)


def _texts() -> dict[str, str]:
    return {
        "off": _("Semantic search is off."),
        "no_key": _("No remote embedding endpoint is configured."),
        "not_installed": _("This model is not installed."),
        "building": _("The index of the chosen model is still being built."),
        "loading": _("The model is still being loaded; this search used words only."),
        "empty": _("No memory has a vector yet."),
        "partial": _("Some memories have no vector yet; the rest is being embedded."),
        "empty_query": _("The query holds no word to search for."),
        "too_many_terms": _("The query has more than 64 different words."),
        "rate_limited": _("The embedding service asks us to slow down."),
        "timeout": _("The embedding service did not answer in time."),
        "request_failed": _("The embedding service failed."),
        "invalid_response": _("The embedding service sent an answer that cannot be used."),
        "model_load_failed": _("The local model could not be loaded."),
        "model_not_installed": _("This model is not installed."),
        "unknown_language": _("The model does not know the language of the query: words only."),
        "url_blocked": _("The address of the embedding service is not allowed."),
        "unavailable": _("The index cannot answer now."),
        "no_embeddings": _("The provider has no embeddings."),
        **_provider_texts(),
        **_qdrant_texts(),
    }


def _provider_texts() -> dict[str, str]:
    return {
        "no_provider": _("No provider has the name before the slash."),
        "provider_off": _("The provider is switched off or not set up to its end."),
        "provider_key": _("The provider has no key."),
    }


def _qdrant_texts() -> dict[str, str]:
    return {
        "not_configured": _("No host of Qdrant is set."),
        "not_enabled": _("Qdrant is switched off."),
        "qdrant_unreachable": _("Qdrant cannot be reached."),
        "qdrant_timeout": _("Qdrant did not answer in time."),
        "qdrant_auth": _("Qdrant refuses the key, or there is none."),
        "qdrant_missing": _("The collection is not on the Qdrant server; it is built again."),
        "qdrant_busy": _("Qdrant asks us to slow down."),
        "qdrant_error": _("Qdrant failed."),
        "qdrant_refused": _("Qdrant refused the request."),
        "qdrant_invalid": _("Qdrant sent an answer that cannot be used."),
        "qdrant_blocked": _("The address of Qdrant is not allowed."),
        "qdrant_building": _("The collection in Qdrant is still being built."),
        "qdrant_behind": _("Qdrant is behind the database."),
        "qdrant_loading": _("Qdrant is being connected."),
        "qdrant_name_taken": _("Qdrant has a collection of this name: choose another name."),
        "qdrant_not_installed": _("The package qdrant-client is not installed."),
        "collection_name": _("The name of a collection holds letters, digits and . _ - only."),
    }


def store_off(chosen: str, pgvector: Health) -> str:
    """Why the store that was chosen does not serve here, but the in-process index does."""
    serves = _("The in-process index serves.")
    if chosen == "pgvector":
        code = str(pgvector.detail.get("code") or "")
        return f"{_store_texts().get(code, pgvector.reason)} {serves}".strip()
    name = {"name": chosen}
    return _("The store “%(name)s” is not available here; the in-process index serves.") % name


def store_note(health: Health) -> str:
    """What is worth knowing of a store that serves; mostly nothing."""
    return _store_texts().get(str(health.detail.get("notice") or ""), "")


def _store_texts() -> dict[str, str]:
    return {
        "not_postgres": _("pgvector needs Postgres as the database."),
        "extension_missing": _("The server of the database does not have pgvector."),
        "extension_forbidden": _("The user of the database may not create the extension pgvector."),
        "extension_old": _("The server's pgvector is older than 0.8."),
        "filling": _("What pgvector searches is being filled; the in-process index answers."),
        "scan_only": _("So many dimensions have no graph: a search reads every row in reach."),
    }


def _rerank_texts() -> dict[str, str]:
    kept = _("Hits keep the order they had.")
    reasons = {
        "no_key": _("The rerank service refuses the key, or there is none."),
        "rate_limited": _("The rerank service asks us to slow down."),
        "timeout": _("The rerank service did not answer in time."),
        "request_failed": _("The rerank service failed."),
        "invalid_response": _("The rerank service sent an answer that cannot be used."),
        "url_blocked": _("The address of the rerank service is not allowed."),
        "not_configured": _("The rerank service has no address."),
        "not_installed": _("No reranker of this kind is installed."),
        "model_load_failed": _("The reranker could not be loaded."),
        "model_not_installed": _("No reranker of this kind is installed."),
        "loading": _("The reranker is still being loaded."),
        "no_reranking": _("The provider has no reranking."),
        **_provider_texts(),
    }
    return {code: f"{reason} {kept}" for code, reason in reasons.items()}


def _faults() -> dict[str, str]:
    return {
        "search_failed": _("A search failed (%(error)s)."),
        "other_analyzer": _("Built by another version of the analyzer: rebuild everything."),
        "unreadable": _("The index cannot be read (%(error)s)."),
        "unknown": _("It failed unexpectedly (%(error)s)."),
    }
