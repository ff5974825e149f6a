"""What is begun for a chat while its caller is being admitted: the vector of its turn."""

from __future__ import annotations

from collections.abc import Mapping

from engine.chat.bodies import Body
from engine.chat.callers import wants_no_memory
from engine.errors import EngineError
from engine.types import Mode, Purpose
from memory import wiring
from memory.model_facts import LOCAL_FAMILIES
from memory.services.gateway import planning
from memory.services.gateway.admission import Admission


def anticipate(before: Admission, headers: Mapping[str, str], body: Body) -> bool:
    """Embed what a chat of a caller who was admitted a moment ago is about to look for.

    The retrieval finds the vector where queries are remembered, or waits for it. Only a model on
    this machine is asked, and only when it is loaded: to a service nothing is sent, nor anything
    spent, for a caller who may be refused. True when it was embedded.
    """
    if wants_no_memory(headers) or not before.is_injecting:
        return False
    if planning.mode_of(before) is Mode.RECENT:
        return False
    resolved = wiring.resolve_source(before.memory)
    source, query = resolved.source, planning.query_of(body)
    if source is None or resolved.family not in LOCAL_FAMILIES or not source.is_loaded:
        return False
    if not query:
        return False
    try:
        source.embed([query], purpose=Purpose.QUERY)
    except EngineError:
        # The retrieval meets the same, and tells it.
        return False
    return True
