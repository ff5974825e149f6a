"""Our own tables as a memory backend, over the services."""

from __future__ import annotations

import uuid

from django.utils.translation import gettext as _

from engine.backends.latency import Facts, checked
from engine.errors import BackendFailed, EngineError
from engine.records import Changes, Draft, Filter, Page, Record, Search
from engine.types import Health, MemoryType, Mode
from memory.backend_wiring import LOCAL
from memory.errors import Conflict, NotFound, ServiceError
from memory.models import Memory
from memory.principal import SYSTEM
from memory.services import listing, memories, retrieval
from memory.services.backends import copies
from memory.services.drafts import MemoryDraft

_NAMES = {"session": "session_id"}


class LocalBackend:
    """Acts as the system: whoever calls it has checked what the caller may do.

    A key is unique among the live memories of an owner: creating one again changes it, as it does
    for clients.
    """

    @property
    def id(self) -> str:
        return LOCAL

    @property
    def display_name(self) -> str:
        return "Memory Studio"

    def initialize(self) -> None:
        """Nothing to get ready: migrations have."""

    def shutdown(self) -> None:
        """Nothing is held open."""

    def create(self, draft: Draft) -> Record:
        """Store or merge by key."""
        offered = MemoryDraft(
            content=draft.content,
            key=draft.key,
            type=draft.type,
            session_id=draft.session,
            metadata=draft.metadata,
            expires_at=draft.expires_at,
        )
        try:
            with copies.deferred():
                memory, _created = memories.create(SYSTEM, offered, owner=draft.owner or None)
        except ServiceError as error:
            raise BackendFailed(str(error), code="request_failed") from None
        return to_record(memory)

    def get(self, record_id: str) -> Record | None:
        """None also for one in the trash or the archive."""
        memory = _find(record_id)
        return None if memory is None else to_record(memory)

    def update(self, record_id: str, changes: Changes) -> bool:
        """Change it as a client would; every earlier text is kept."""
        values = {_NAMES.get(name, name): value for name, value in changes.items()}
        try:
            with copies.deferred():
                memories.update(SYSTEM, record_id, values)
        except NotFound:
            return False
        except Conflict as error:
            raise BackendFailed(str(error)) from None
        return True

    def delete(self, record_id: str) -> bool:
        """To the trash."""
        if _find(record_id) is None:
            return False
        with copies.deferred():
            memories.delete(SYSTEM, record_id)
        return True

    def list_records(self, wanted: Filter) -> Page:
        """Live memories, newest first."""
        asked = listing.MemoryFilter(
            owner=wanted.owner or None,
            type=wanted.type,
            session=wanted.session or None,
            q=wanted.query,
            limit=wanted.limit,
            offset=wanted.offset,
        )
        try:
            page, kinds = listing.local_page(SYSTEM, asked), listing.kinds(SYSTEM, asked)
        except NotFound:
            return Page((), 0)
        return Page([to_record(row.memory) for row in page.rows], page.total, kinds)

    def search(self, wanted: Search) -> list[Record]:
        """The one retrieval, hybrid."""
        asked = retrieval.RetrieveRequest(
            wanted.query,
            mode=Mode.HYBRID,
            limit=wanted.limit,
            max_tokens=wanted.max_tokens if wanted.max_tokens is not None else 16_000,
            owner=wanted.owner or None,
            all_owners=not wanted.owner,
            session=wanted.session or None,
            types=(MemoryType(wanted.type),) if wanted.type else (),
        )
        try:
            view = retrieval.retrieve_here(SYSTEM, asked)
        except NotFound:
            return []
        except (EngineError, ServiceError) as error:
            raise BackendFailed(str(error)) from None
        hits = view.retrieval.hits
        return [to_record(view.memories[hit.passage.parent], score=hit.score) for hit in hits]

    def health(self) -> Health:
        """A real round trip: write, find, erase."""
        return checked(_round_trip)


def to_record(memory: Memory, *, score: float | None = None) -> Record:
    """A memory as a record."""
    return Record(
        id=str(memory.pk),
        key=memory.key,
        content=memory.content,
        type=memory.type,
        owner=str(memory.api_key.uid),
        session=memory.session_id,
        metadata=memory.metadata,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        expires_at=memory.expires_at,
        score=score,
    )


def _find(record_id: str) -> Memory | None:
    try:
        wanted = uuid.UUID(record_id)
    except ValueError:
        return None
    rows = Memory.objects.filter(trashed_at__isnull=True, archived_at__isnull=True)
    return rows.select_related("api_key").filter(pk=wanted).first()


def _round_trip() -> Facts:
    from memory.services import status

    result = status.health(SYSTEM)
    if not result.working:
        raise BackendFailed(result.error or _("The memory was written but not found."))
    return {}
