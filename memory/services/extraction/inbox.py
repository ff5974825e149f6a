"""The review inbox: facts that somebody accepts, changes or rejects.

A fact that was rejected is not asked about again for 90 days, however often it is said.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from engine.extract.secrets import has_secret
from engine.text.normalize import normalize
from memory.clock import now
from memory.errors import Conflict, Invalid, NotFound, ServiceError
from memory.models import ApiKey, InboxItem, Memory
from memory.principal import Principal
from memory.services import access, audit, memories
from memory.services.drafts import MAX_CONTENT, TYPES, MemoryDraft

MAX_LIMIT: Final = 200
MOST_AT_ONCE: Final = 200
REJECTED_FOR: Final = timedelta(days=90)
MOST_PENDING: Final = 2000
"""Items that one owner may have waiting: beyond that nobody reads them."""
STATES: Final = frozenset(InboxItem.State.values)


@dataclass(frozen=True, slots=True)
class Heard:
    """A fact on its way into the inbox."""

    category: str
    type: str
    key: str
    content: str
    polarity: str
    speaker: str
    confidence: float
    reason: str
    source: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    session: str = ""
    trace_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """What to list; None for ``owner`` is every owner that the caller may see."""

    owner: str | None = None
    state: str = "pending"
    category: str = ""
    reason: str = ""
    limit: int = 50
    page: int = 1


@dataclass(frozen=True, slots=True)
class InboxPage:
    """One page, newest first. ``counts`` are items by state, whatever state is listed."""

    rows: list[InboxItem]
    counts: Mapping[str, int]
    total: int
    page: int
    limit: int

    @property
    def total_pages(self) -> int:
        """How many pages there are."""
        return -(-self.total // self.limit)


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decides: ``accept`` (with the text changed, perhaps), ``reject`` or
    ``reopen``, which takes an earlier decision back."""

    action: str
    content: str | None = None
    type: str | None = None
    revision: int | None = None


def hear(owner: ApiKey, heard: Heard) -> InboxItem | None:
    """Put a fact into the inbox; None where it was rejected before, or is a memory already.

    One that waits already is counted, and takes the text of the last time. Call inside a
    transaction.
    """
    if _is_settled(owner, heard):
        return None
    waiting = InboxItem.objects.filter(owner=owner, key=heard.key, state="pending")
    values = _values(heard)
    if waiting.update(seen=F("seen") + 1, updated_at=now(), **values):
        return waiting.get()
    if InboxItem.objects.filter(owner=owner, state="pending").count() >= MOST_PENDING:
        return None
    try:
        with transaction.atomic():
            return InboxItem.objects.create(
                owner=owner, key=heard.key, created_at=now(), updated_at=now(), **values
            )
    except IntegrityError:
        # Another worker heard the same at this moment.
        return waiting.first()


def _values(heard: Heard) -> dict[str, Any]:
    return {
        "session_id": heard.session,
        "category": heard.category,
        "type": heard.type,
        "content": heard.content,
        "polarity": heard.polarity,
        "speaker": heard.speaker,
        "confidence": round(heard.confidence, 3),
        "reason": heard.reason,
        "source": heard.source,
        "metadata": dict(heard.metadata),
        "trace_id": heard.trace_id,
    }


def is_asked(owner: ApiKey, heard: Heard) -> bool:
    """Whether somebody would be asked about a fact."""
    return not _is_settled(owner, heard)


def _is_settled(owner: ApiKey, heard: Heard) -> bool:
    rejected = InboxItem.objects.filter(
        owner=owner,
        key=heard.key,
        state="rejected",
        polarity=heard.polarity,
        decided_at__gt=now() - REJECTED_FOR,
    )
    if rejected.exists():
        return True
    known = Memory.objects.filter(
        api_key=owner, key=heard.key, archived_at__isnull=True, trashed_at__isnull=True
    )
    said = normalize(heard.content)
    return any(normalize(content) == said for content in known.values_list("content", flat=True))


def settle(owner: ApiKey, key: str, memory: Memory) -> None:
    """Take out of the inbox what has become a memory otherwise."""
    InboxItem.objects.filter(owner=owner, key=key, state="pending").update(
        state="accepted", memory=memory, decided_at=now(), decided_by="extraction"
    )


def visible(principal: Principal) -> QuerySet[InboxItem]:
    """Items that the caller may see."""
    rows = InboxItem.objects.select_related("owner")
    return rows if access.may_name_owners(principal) else rows.filter(owner=principal.owner)


def list_page(principal: Principal, wanted: InboxFilter) -> InboxPage:
    """One page of the inbox; a page beyond the end is empty. Leaves an audit row."""
    access.require(principal, "read")
    _check(wanted)
    rows = visible(principal)
    owner = access.read_owner(principal, wanted.owner)
    if owner is not None:
        rows = rows.filter(owner=owner)
    counts = {state: rows.filter(state=state).count() for state in InboxItem.State.values}
    rows = rows.filter(state=wanted.state) if wanted.state else rows
    for name in ("category", "reason"):
        if value := getattr(wanted, name):
            rows = rows.filter(**{name: value})
    first = (wanted.page - 1) * wanted.limit
    found = list(rows.order_by("-created_at", "-id")[first : first + wanted.limit])
    if found:
        audit.record(principal, "inbox.list", owner=owner, ids=[row.pk for row in found])
    return InboxPage(found, counts, rows.count(), wanted.page, wanted.limit)


def _check(wanted: InboxFilter) -> None:
    problems: dict[str, str] = {}
    if not 1 <= wanted.limit <= MAX_LIMIT:
        problems["limit"] = _("A number from 1 to %(most)s.") % {"most": MAX_LIMIT}
    if wanted.page < 1:
        problems["page"] = _("Pages start at 1.")
    if wanted.state and wanted.state not in STATES:
        problems["state"] = _("One of: %(states)s.") % {"states": ", ".join(sorted(STATES))}
    if problems:
        raise Invalid(_("The list cannot be shown like that."), fields=problems)


def get(principal: Principal, item_id: str | uuid.UUID) -> InboxItem:
    """One item. Raises ``NotFound`` also for another owner's."""
    access.require(principal, "read")
    return _find(principal, item_id)


def pending_count(principal: Principal) -> int:
    """How many items wait for the caller."""
    return visible(principal).filter(state="pending").count()


def decide(principal: Principal, item_id: str | uuid.UUID, decision: Decision) -> InboxItem:
    """Accept, reject or reopen one item.

    Accepting stores the memory; reopening takes it back into the trash. Raises ``NotFound``,
    ``Invalid``, and ``Conflict`` where somebody has decided meanwhile.
    """
    access.require(principal, "write")
    _check_decision(decision)
    item = _find(principal, item_id)
    if decision.revision is not None and decision.revision != item.revision:
        raise Conflict(_("Someone else changed this item meanwhile."), code="stale")
    with audit.gathered():
        _DECISIONS[decision.action](principal, item, decision)
    ids = [item.pk] if item.memory_id is None else [item.pk, item.memory_id]
    audit.record(principal, f"inbox.{decision.action}", owner=item.owner, ids=ids)
    return item


def decide_many(
    principal: Principal, item_ids: Sequence[str], decision: Decision
) -> list[tuple[str, InboxItem | ServiceError]]:
    """The same decision about many items, each by itself: one that cannot be decided leaves the
    others as they are. Answers each id with its item, or the refusal."""
    if len(item_ids) > MOST_AT_ONCE:
        raise Invalid(
            _("That is too many at once."),
            fields={"ids": _("At most %(most)s.") % {"most": MOST_AT_ONCE}},
        )
    plain = replace(decision, content=None, type=None, revision=None)
    answers: list[tuple[str, InboxItem | ServiceError]] = []
    for item_id in dict.fromkeys(item_ids):
        try:
            answers.append((item_id, decide(principal, item_id, plain)))
        except (NotFound, Conflict, Invalid) as error:
            answers.append((item_id, error))
    return answers


def _check_decision(decision: Decision) -> None:
    problems: dict[str, str] = {}
    if decision.action not in _DECISIONS:
        problems["action"] = _("One of: %(actions)s.") % {"actions": ", ".join(_DECISIONS)}
    content = decision.content
    if content is not None and not content.strip():
        problems["content"] = _("This cannot be empty.")
    if content is not None and len(content) > MAX_CONTENT:
        problems["content"] = _("This is too long.")
    if content is not None and has_secret(content):
        problems["content"] = _("This holds a secret.")
    if decision.type is not None and decision.type not in TYPES:
        problems["type"] = _("One of: %(types)s.") % {"types": ", ".join(sorted(TYPES))}
    if problems:
        raise Invalid(_("This cannot be decided like that."), fields=problems)


def _accept(principal: Principal, item: InboxItem, decision: Decision) -> None:
    """Claim the item first: a backend elsewhere is told of the memory outside of a transaction."""
    content = (decision.content or item.content).strip()
    kind = decision.type or item.type
    _move(principal, item, "pending", "accepted", content=content, type=kind)
    draft = MemoryDraft(
        content=content,
        key=item.key,
        type=kind,
        session_id=item.session_id,
        metadata={**item.metadata, "acceptedBy": principal.label},
    )
    try:
        memory, _created = memories.create(principal, draft, owner=str(item.owner.uid))
    except Exception:
        _move(principal, item, "accepted", "pending")
        raise
    if InboxItem.objects.filter(pk=item.pk, revision=item.revision).update(memory=memory) != 1:
        # Somebody took it back while the memory was being stored.
        if not InboxItem.objects.filter(pk=item.pk, state="accepted").exists():
            _take_back(principal, memory, content)
        raise Conflict(_("Someone else changed this item meanwhile."), code="stale")
    item.memory = memory


def _reject(principal: Principal, item: InboxItem, _decision: Decision) -> None:
    _move(principal, item, "pending", "rejected")


def _reopen(principal: Principal, item: InboxItem, _decision: Decision) -> None:
    if item.state == "pending":
        raise Conflict(_("This item is waiting already."), code="not_decided")
    memory, content = item.memory, item.content
    try:
        with transaction.atomic():
            _move(principal, item, item.state, "pending", memory=None)
    except IntegrityError:
        raise Conflict(_("The same is waiting in the inbox already."), code="key_taken") from None
    if memory is not None and memory.trashed_at is None and memory.archived_at is None:
        _take_back(principal, memory, content)


def _take_back(principal: Principal, memory: Memory, content: str) -> None:
    """Undo an acceptance: the memory as it was before, or into the trash where it was new; one
    that was changed since stays."""
    if memory.content != content:
        return
    earlier = memory.revisions.order_by("-revision").first()
    if earlier is None:
        memories.delete(principal, memory.pk)
    else:
        memories.revert(principal, memory.pk, earlier.revision)


def _move(principal: Principal, item: InboxItem, before: str, after: str, **values: Any) -> None:
    """Put an item from one state into another, unless somebody was faster."""
    is_decided = after != "pending"
    changes = {
        "state": after,
        "updated_at": now(),
        "decided_at": now() if is_decided else None,
        "decided_by": principal.label[:160] if is_decided else "",
        "revision": item.revision + 1,
        **values,
    }
    rows = InboxItem.objects.filter(pk=item.pk, state=before, revision=item.revision)
    if rows.update(**changes) != 1:
        raise Conflict(_("This item was decided already."), code="decided")
    for name, value in changes.items():
        setattr(item, name, value)


_DECISIONS: Final = {"accept": _accept, "reject": _reject, "reopen": _reopen}
ACTIONS: Final = frozenset(_DECISIONS)


def prune() -> int:
    """Forget decisions that are older than 90 days; how many."""
    decided = InboxItem.objects.exclude(state="pending")
    count, _by_model = decided.filter(decided_at__lt=now() - REJECTED_FOR).delete()
    return count


def _find(principal: Principal, item_id: str | uuid.UUID) -> InboxItem:
    try:
        wanted = item_id if isinstance(item_id, uuid.UUID) else uuid.UUID(item_id)
    except ValueError:
        raise NotFound(_("No such item.")) from None
    item = visible(principal).select_related("memory").filter(pk=wanted).first()
    if item is None:
        raise NotFound(_("No such item."))
    return item
