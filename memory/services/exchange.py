"""JSON out and in: the export of everything, and imports with a report, progress and cancel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import IO, Any, Final

from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from memory import jobs
from memory.clock import iso, now
from memory.errors import Invalid, TierDown
from memory.models import ApiKey, Job, Memory
from memory.principal import ALL_SCOPES, Principal
from memory.said import parts
from memory.services import access, audit, keys, memories, uploads
from memory.services.drafts import MemoryDraft
from memory.services.records import draft_of, owner_of

FORMAT: Final = "memory-studio"
BATCH: Final = 500
MAX_PROBLEMS: Final = 50

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """One record that was skipped: its place in the file (from 1) and why.

    ``parts`` is the same as ``message`` in the form that any reader's language can be made of.
    """

    place: int
    message: str
    parts: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class ImportReport:
    """What an import did. Only the first 50 problems are kept; ``skipped`` counts all."""

    total: int = 0
    imported: int = 0
    updated: int = 0
    skipped: int = 0
    seconds: float = 0.0
    problems: list[Problem] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """Records a second."""
        return self.total / self.seconds if self.seconds else 0.0

    def skip(self, place: int, reasons: Sequence[str]) -> None:
        """Count a record that cannot be stored."""
        self.skipped += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(place, "; ".join(reasons), parts(reasons)))


def memory_json(memory: Memory) -> dict[str, Any]:
    """A memory under the field names of the first seed, and ours."""
    use = getattr(memory, "use", None)
    return {
        "id": str(memory.pk),
        "apiKeyId": str(memory.api_key.uid),
        "apiKeyName": memory.api_key.name,
        "sessionId": memory.session_id,
        "type": memory.type,
        "key": memory.key,
        "content": memory.content,
        "metadata": memory.metadata,
        "createdAt": iso(memory.created_at),
        "updatedAt": iso(memory.updated_at),
        "expiresAt": iso(memory.expires_at),
        "occurredAt": iso(memory.occurred_at),
        "archivedAt": iso(memory.archived_at),
        "accessCount": use.access_count if use else 0,
        "lastAccessedAt": iso(use.last_accessed_at) if use else None,
        "pinned": memory.is_pinned,
        "shared": memory.is_shared,
        "revision": memory.revision,
        "tokens": memory.tokens,
    }


def export_all(principal: Principal, owner: str | None = None) -> Iterator[str]:
    """Every live and archived memory as one JSON document, in pieces."""
    access.require(principal, "read")
    key = access.read_owner(principal, owner)
    rows = Memory.objects.filter(trashed_at__isnull=True).select_related("api_key", "use")
    if key is not None:
        rows = rows.filter(api_key=key)
    audit.record(principal, "memory.export", owner=key)
    return _document(rows.order_by("created_at", "pk").iterator(chunk_size=500))


def _document(rows: Iterator[Memory]) -> Iterator[str]:
    head = {"format": FORMAT, "version": 1, "exportedAt": iso(now())}
    yield json.dumps(head)[:-1] + ', "memories": ['
    separator = "\n"
    for row in rows:
        yield separator + json.dumps(memory_json(row), ensure_ascii=False)
        separator = ",\n"
    yield "\n]}\n"


def read_records(file: IO[bytes]) -> list[object]:
    """The records of a JSON export, a JSON list or JSONL. Raises ``Invalid``."""
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid(_("The file is not UTF-8 text."), code="invalid_utf8") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        # Not ``splitlines``: JSON may hold U+2028 and its kin as they are.
        return [_line(line) for line in text.split("\n") if line.strip()]
    if isinstance(document, list):
        return document
    for name in ("memories", "data"):
        if isinstance(document, dict) and isinstance(document.get(name), list):
            found: list[object] = document[name]
            return found
    return [document]


def _line(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def import_records(
    principal: Principal,
    records: Sequence[object],
    *,
    owner: str | None,
    progress: Progress | None = None,
) -> ImportReport:
    """Store records, 500 a transaction; what cannot be stored is skipped and reported.

    ``owner`` None takes the owner each record names, making keys that are missing, and the
    default key for the rest. Only a manager's records keep their mark as shared.
    """
    access.require(principal, "write")
    report, started = ImportReport(), time.perf_counter()
    fixed = access.write_owner(principal, owner) if owner or principal.owner else None
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        drafts: dict[str | None, list[MemoryDraft]] = {}
        for place, record in enumerate(batch, start=start + 1):
            try:
                draft = draft_of(record)
                if not principal.may("manage"):
                    draft = replace(draft, is_shared=False)
                named = None if fixed or not isinstance(record, dict) else owner_of(record)
            except Invalid as error:
                report.skip(place, list(error.fields.values()) or [error.message])
            else:
                drafts.setdefault(named, []).append(draft)
        _store(principal, fixed, drafts, report)
        report.total, report.seconds = start + len(batch), time.perf_counter() - started
        if progress is not None:
            progress(report.total, len(records))
    return report


def _store(
    principal: Principal,
    fixed: ApiKey | None,
    drafts: dict[str | None, list[MemoryDraft]],
    report: ImportReport,
) -> None:
    with transaction.atomic():
        for name, batch in drafts.items():
            key = fixed or _owner_named(principal, name)
            stored = memories.store_many(principal, key, batch)
            created = sum(item.created for item in stored)
            report.imported += created
            report.updated += len(stored) - created
            audit.record(
                principal, "memory.import", owner=key, ids=[item.memory.pk for item in stored]
            )


def _owner_named(principal: Principal, name: str | None) -> ApiKey:
    if name is None:
        return access.default_key()
    existing = ApiKey.objects.filter(name=name).first()
    return existing or keys.create(principal, name)[0]


def start_import(principal: Principal, file: IO[bytes], *, owner: str | None) -> Job:
    """Keep an uploaded file and import it in the background; the job's result is the report."""
    access.require(principal, "write")
    if owner or principal.owner is not None:
        owner = str(access.write_owner(principal, owner).uid)
    try:
        name = uploads.keep(file)
    except DatabaseError:
        raise TierDown(_("The file cannot be kept: the disk may be full.")) from None
    return jobs.enqueue(
        jobs.Order(
            "import",
            params={"file": name, "owner": owner, "shares": principal.may("manage")},
            owner_id=principal.owner,
            requested_by=principal.label,
        )
    )


def run_import(context: jobs.JobContext) -> dict[str, Any]:
    """Handler of the job ``import``. Going on after a crash starts over: upserts repeat safely."""
    if "report" in context.params:
        # The file was gone already when the process was killed.
        done: dict[str, Any] = context.params["report"]
        return done
    records = read_records(uploads.read(context.params["file"]))
    context.progress(0, len(records), force=True)
    scopes = ALL_SCOPES if context.params["shares"] else frozenset({"write"})
    principal = Principal("system", context.job.requested_by or "system", scopes)
    report = import_records(
        principal, records, owner=context.params["owner"], progress=context.progress
    )
    context.progress(report.total, len(records), force=True)
    result = {**asdict(report), "per_second": round(report.per_second, 1)}
    with transaction.atomic():
        context.save_params(report=result)
        uploads.forget(context.params["file"])
    return result
