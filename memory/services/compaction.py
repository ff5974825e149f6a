"""Compaction: by age into one summary an owner, or by token budget row by row. Undoable.

Originals are archived and linked, or kept as an earlier revision; nothing is lost.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from typing import Any, Final, Literal

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from engine.summarise import Row, summarise_by_age, summarise_to_budget
from engine.types import MemoryType
from memory import jobs
from memory.clock import iso, now
from memory.errors import Conflict, Invalid, NotFound
from memory.models import ApiKey, Compaction, Job, Memory
from memory.principal import Principal
from memory.services import access, audit, memories, passages
from memory.services.backends import copies
from memory.services.drafts import MemoryDraft
from memory.services.lifetimes import live
from memory.services.webhooks import events

SUMMARY: Final = "summary_"
"""Keys of summaries; a summary is never summarised again."""
BATCH: Final = 500
"""Rows of one statement: databases limit how many values it may carry."""


@dataclass(frozen=True, slots=True)
class CompactRequest:
    """What to compact. Without an owner only a preview is possible, unless ``all_owners``."""

    kind: Literal["age", "tokens"] = "age"
    owner: str | None = None
    all_owners: bool = False
    older_than_days: int = 30
    max_tokens: int = 4000
    session: str | None = None


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One memory a plan touches; ``new_content`` is None when it goes into a summary."""

    memory: Memory
    new_content: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The compaction of one owner; ``texts`` are exactly the summaries that would be stored."""

    owner: ApiKey
    candidates: list[PlanItem]
    texts: list[str]
    total_tokens: int
    tokens_saved: int
    original_count: int

    @property
    def changing(self) -> list[PlanItem]:
        """The candidates that do not stay as they are; a text may be too short to get shorter."""
        return [item for item in self.candidates if item.new_content != item.memory.content]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction job has done so far."""

    job: Job
    compactions: list[Compaction] = field(default_factory=list)
    texts: Mapping[str, list[str]] = field(default_factory=dict)


def preview(principal: Principal, request: CompactRequest) -> list[Plan]:
    """What would be done, one plan an owner that has candidates. Changes nothing."""
    access.require(principal, "read")
    plans = (_plan(owner, request) for owner in _owners(principal, request))
    return [plan for plan in plans if plan.candidates]


def start(principal: Principal, request: CompactRequest, *, dispatch: bool = True) -> Job:
    """Start the job.

    Raises ``Invalid`` when neither an owner nor all owners were named, and ``Conflict`` while
    another compaction of the same owners waits or runs.
    """
    access.require(principal, "write")
    if principal.owner is None and not request.owner and not request.all_owners:
        message = _("Name an owner, or ask for all owners.")
        raise Invalid(message, fields={"apiKeyId": message})
    owners = [owner.pk for owner in _owners(principal, request)]
    params: dict[str, Any] = {**asdict(request), "owners": owners, "compactions": []}
    with transaction.atomic():
        job = jobs.enqueue(
            jobs.Order(
                "compact",
                params=params,
                dedupe_key=f"compact:{owners[0]}" if len(owners) == 1 else "compact",
                owner_id=owners[0] if len(owners) == 1 else None,
                requested_by=principal.label,
            ),
            dispatch=dispatch,
        )
        if (job.requested_by, job.params) != (principal.label[:160], params):
            # Someone else's, perhaps of other owners: nothing of it is for this caller.
            raise Conflict(_("Another compaction is running."), code="busy")
        audit.record(principal, "memory.compact", ids=[job.pk])
    return job


def run_now(principal: Principal, request: CompactRequest) -> Outcome:
    """Compact in the foreground and answer what was done; a crash leaves the job to the sweep.

    Raises ``Conflict`` while another compaction runs.
    """
    job = start(principal, request, dispatch=False)
    if not jobs.run(job.pk, {"compact": run}, role="request"):
        raise Conflict(_("Another compaction is running."), code="busy")
    job.refresh_from_db()
    return outcome(job)


def run(context: jobs.JobContext) -> dict[str, Any]:
    """Handler of the job ``compact``: one transaction an owner, so that a restart goes on."""
    params = context.params
    names = [item.name for item in fields(CompactRequest)]
    request = CompactRequest(**{name: params[name] for name in names})
    principal = Principal(
        kind="system", name=context.job.requested_by or "system", scopes=frozenset({"write"})
    )
    owners: list[int] = params["owners"]
    done = len(owners) - len(params.get("left", owners))
    for place, owner_id in enumerate(owners[done:], start=done + 1):
        with transaction.atomic(), events.together():
            # A compaction of all owners may come to this one at the same time. The lock is not
            # the key's row: every request with the key writes to that.
            owner = ApiKey.objects.get(pk=owner_id)
            memories.lock_owner(owner)
            made = _compact(principal, owner, request)
            ids = [*context.params["compactions"], *([str(made.pk)] if made else [])]
            context.save_params(compactions=ids, left=owners[place:])
        context.progress(place, len(owners), force=True)
    return {"compactions": context.params["compactions"]}


def outcome(job: Job) -> Outcome:
    """What a job has done so far."""
    found = Compaction.objects.filter(pk__in=job.params["compactions"])
    made = list(found.select_related("api_key").order_by("created_at"))
    ids = [memory_id for item in made for memory_id in item.summary_ids]
    rows = Memory.objects.filter(pk__in=ids).values_list("pk", "content")
    stored = {str(memory_id): content for memory_id, content in rows}
    texts = {
        str(item.pk): [stored[name] for name in item.summary_ids if name in stored] for item in made
    }
    return Outcome(job, made, texts)


def undo(principal: Principal, reference: str) -> Compaction:
    """Bring back what a compaction archived or shortened; takes its id or that of a summary.

    Raises ``Conflict`` when it was undone before, or when a key was taken meanwhile.
    """
    access.require(principal, "write")
    with transaction.atomic(), copies.deferred(), events.together():
        made = _find(principal, reference)
        if made.undone_at is not None:
            raise Conflict(_("This compaction was already undone."), code="already_undone")
        memories.lock_owner(made.api_key)
        for summary in Memory.objects.filter(pk__in=made.summary_ids, trashed_at__isnull=True):
            memories.delete(principal, summary.pk)
        _unarchive(made)
        for memory_id, revision in made.rewritten:
            # A text that someone has edited since stays as they left it; history has the rest.
            untouched = Memory.objects.filter(pk=memory_id, revision=revision + 1)
            if untouched.filter(trashed_at__isnull=True).exists():
                memories.revert(principal, memory_id, revision)
        made.undone_at = now()
        made.save(update_fields=["undone_at"])
        audit.record(principal, "memory.compact.undo", owner=made.api_key, ids=[made.pk])
    return made


def recent(principal: Principal, *, limit: int = 10) -> list[Compaction]:
    """Newest compactions the caller may see."""
    access.require(principal, "read")
    rows = Compaction.objects.select_related("api_key")
    if not access.may_name_owners(principal):
        rows = rows.filter(api_key=principal.owner)
    return list(rows[:limit])


def _owners(principal: Principal, request: CompactRequest) -> list[ApiKey]:
    owner = access.read_owner(principal, request.owner)
    return [owner] if owner is not None else list(ApiKey.objects.order_by("pk"))


def _plan(owner: ApiKey, request: CompactRequest, *, lock_rows: bool = False) -> Plan:
    rows = Memory.objects.filter(live(), api_key=owner).select_related("api_key")
    if lock_rows:
        # Nobody changes a text between its reading and its archiving.
        rows = rows.select_for_update(of=("self",))
    if request.session:
        rows = rows.filter(session_id=request.session)
    return (
        _by_tokens(owner, rows, request)
        if request.kind == "tokens"
        else _by_age(owner, rows, request)
    )


def _by_age(owner: ApiKey, rows: QuerySet[Memory], request: CompactRequest) -> Plan:
    """Everything strictly older than the cut-off, oldest first; pinned rows and summaries stay."""
    before = now() - timedelta(days=request.older_than_days)
    old = rows.filter(created_at__lt=before, is_pinned=False).exclude(key__startswith=SUMMARY)
    found = list(old.order_by("created_at", "pk"))
    summary = summarise_by_age(_rows(found), days=request.older_than_days)
    return Plan(
        owner=owner,
        candidates=[PlanItem(row) for row in found],
        texts=[text.text for text in summary.texts],
        total_tokens=summary.total_tokens,
        tokens_saved=summary.tokens_saved,
        original_count=len(found),
    )


def _rows(found: Sequence[Memory]) -> list[Row]:
    return [
        Row(place, MemoryType(row.type), row.key, row.content) for place, row in enumerate(found)
    ]


def _by_tokens(owner: ApiKey, rows: QuerySet[Memory], request: CompactRequest) -> Plan:
    """Newest first while the running total fits; every other row is cut to its first sentences."""
    found = list(rows.order_by("-created_at", "-pk"))
    summary = summarise_to_budget(_rows(found), max_tokens=request.max_tokens)
    over = [item for item in summary.shortened if not found[item.row_id].is_pinned]
    return Plan(
        owner=owner,
        candidates=[PlanItem(found[item.row_id], item.text) for item in over],
        texts=[],
        total_tokens=sum(found[item.row_id].tokens for item in over),
        tokens_saved=sum(item.tokens_saved for item in over),
        original_count=len(found),
    )


def _compact(principal: Principal, owner: ApiKey, request: CompactRequest) -> Compaction | None:
    """Carry out the plan of one owner inside the caller's transaction."""
    plan = _plan(owner, request, lock_rows=True)
    if not plan.candidates:
        return None
    made = Compaction(
        api_key=owner,
        kind=request.kind,
        params=asdict(request),
        original_count=len(plan.candidates),
        tokens_saved=plan.tokens_saved,
        created_at=now(),
    )
    made.save()
    if request.kind == "tokens":
        _rewrite(principal, plan, made)
    else:
        _archive(plan, made)
        drafts = _summaries(plan, request, made)
        stored = memories.store_many(principal, owner, drafts)
        made.summary_ids = [str(item.memory.pk) for item in stored]
    made.save(update_fields=["summary_ids", "rewritten"])
    ids = [item.memory.pk for item in plan.candidates]
    audit.record(principal, f"memory.compact.{request.kind}", owner=owner, ids=ids)
    return made


def _rewrite(principal: Principal, plan: Plan, made: Compaction) -> None:
    for item in plan.candidates:
        if item.new_content is None or item.new_content == item.memory.content:
            continue
        made.rewritten.append([str(item.memory.pk), item.memory.revision])
        memories.rewrite(principal, item.memory, item.new_content, "compact")


def _archive(plan: Plan, made: Compaction) -> None:
    rows = [item.memory for item in plan.candidates]
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        ids = [row.pk for row in batch]
        Memory.objects.filter(pk__in=ids).update(archived_at=made.created_at, archived_by=made)
        for row in batch:
            row.archived_at, row.archived_by = made.created_at, made
    passages.sync(rows)
    events.told(events.COMPACTED, rows)


def _summaries(plan: Plan, request: CompactRequest, made: Compaction) -> list[MemoryDraft]:
    stamp = iso(made.created_at)
    metadata = {
        "source": "compaction",
        "summarizedCount": plan.original_count,
        "olderThanDays": request.older_than_days,
        "generatedAt": stamp,
    }
    return [
        MemoryDraft(
            content=text,
            key=f"{SUMMARY}{stamp}" + (f"_{place}" if len(plan.texts) > 1 else ""),
            type=MemoryType.SEMANTIC.value,
            metadata=metadata,
        )
        for place, text in enumerate(plan.texts, start=1)
    ]


def _unarchive(made: Compaction) -> None:
    rows = list(made.originals.select_for_update())
    try:
        with transaction.atomic():
            made.originals.update(archived_at=None, archived_by=None)
    except IntegrityError:
        raise Conflict(
            _("A key of the originals is used by another memory now."), code="key_taken"
        ) from None
    for row in rows:
        row.archived_at = row.archived_by = None
    # One that was deleted since stays in the trash, out of the indexes, and live once restored.
    kept = [row for row in rows if row.trashed_at is None]
    passages.sync(kept)
    events.told(events.RESTORED, kept)


def _find(principal: Principal, reference: str) -> Compaction:
    try:
        wanted = uuid.UUID(reference)
    except ValueError:
        raise NotFound(_("No such compaction.")) from None
    rows = Compaction.objects.select_for_update()
    if not access.may_name_owners(principal):
        rows = rows.filter(api_key=principal.owner)
    made = rows.filter(pk=wanted).first()
    if made is None:
        made = next((row for row in rows if str(wanted) in row.summary_ids), None)
    if made is None:
        raise NotFound(_("No such compaction."))
    return made
