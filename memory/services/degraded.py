"""Engine reasons in the words of the user's language."""

from __future__ import annotations

from django.utils.translation import gettext as _

from engine.types import Degraded


def explain(item: Degraded) -> str:
    """What a tier that did not serve means for the reader."""
    texts = {
        "off": _("Semantic search is off."),
        "no_key": _("No remote embedding endpoint is configured."),
        "not_installed": _("No static embedding model is installed."),
        "building": _("The index of the chosen model is still being built."),
        "loading": _("The model is still being loaded; this search used words only."),
        "empty": _("No memory has a vector yet."),
        "partial": _("Some memories have no vector yet; the rest is being embedded."),
        "empty_query": _("The query holds no word to search for."),
        "rate_limited": _("The embedding service asks us to slow down."),
        "timeout": _("The embedding service did not answer in time."),
        "request_failed": _("The embedding service failed."),
        "invalid_response": _("The embedding service sent an answer that cannot be used."),
        "model_load_failed": _("The local model could not be loaded."),
        "url_blocked": _("The address of the embedding service is not allowed."),
    }
    return texts.get(item.code, item.message)
