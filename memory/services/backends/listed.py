"""Pages of memories as a primary backend elsewhere has them."""

from __future__ import annotations

from engine.records import Filter
from memory import backend_wiring
from memory.principal import Principal
from memory.services import access, listing
from memory.services.backends import mirror


def page(principal: Principal, wanted: listing.MemoryFilter) -> listing.MemoryPage | None:
    """One page of the primary; None when the mirror here has to answer."""
    plan = backend_wiring.plan()
    if plan.configs[plan.primary].answers != "backend":
        return None
    owner = access.read_owner(principal, wanted.owner)
    offset = wanted.offset if wanted.offset is not None else (wanted.page - 1) * wanted.limit
    asked = Filter(
        owner=str(owner.uid) if owner else "",
        type=wanted.type or "",
        session=wanted.session or "",
        query=wanted.q.strip(),
        limit=wanted.limit,
        offset=offset,
    )
    found = mirror.listed(asked)
    if found is None:
        return None
    answer, memories = found
    # Whatever the backend sends, a caller sees its own rows only.
    own = [row.pk for row in memories if owner is None or row.api_key_id == owner.pk]
    return listing.page_of(listing.rows_of(own), max(answer.total, offset + len(own)), wanted)
