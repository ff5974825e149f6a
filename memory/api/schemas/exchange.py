"""Shapes of ``/api/memory/import`` and ``/api/memory/export``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from memory.api.schemas.access import JobOut
from memory.api.schemas.base import Shape, Text, TypeName

ImportFormat = Literal[
    "auto",
    "json",
    "jsonl",
    "csv",
    "markdown",
    "mem0",
    "openmemory",
    "chatgpt",
    "claude",
    "mcp",
]


class ImportQuery(Schema):
    """Query of POST ``/api/memory/import``, or fields beside the file of a form.

    ``apiKeyId`` (of others only with ``manage``) takes every record; without it a key takes them
    itself, and for the studio they go to the owners they name.
    ``assistant`` imports its turns of chats as well. ``name`` is what the file is called.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    format: ImportFormat = "auto"
    dry_run: bool = False
    api_key_id: Text = ""
    assistant: bool = False
    name: Annotated[Text, Field(max_length=200)] = ""


class ImportProblem(Shape):
    """Why one record is not stored; ``place`` counts records, lines or files from 1, in an archive
    within ``file``."""

    place: int
    unit: str
    file: str
    message: str


class ImportSample(Shape):
    """A memory as it would be stored, its text shortened."""

    api_key_name: str
    key: str
    content: str
    type: str
    session_id: str
    metadata: dict[str, Any]
    created_at: str | None
    occurred_at: str | None
    expires_at: str | None


class ImportReportOut(Shape):
    """What an import would do: ``total`` is the sum of ``imported`` (new), ``updated``, ``same``
    and ``skipped``. At most 50 problems and owners are listed. The result of a job is the same,
    without ``sample``."""

    format: str
    dry_run: bool
    total: int
    imported: int
    updated: int
    same: int
    skipped: int
    left_out: int
    types: dict[str, int]
    owners: dict[str, int]
    problems: list[ImportProblem]
    seconds: float
    per_second: float
    sample: list[ImportSample]


class ImportStarted(Shape):
    """The job that imports; its result is the report."""

    job_id: str
    job: JobOut


class ExportQuery(Schema):
    """Query of GET ``/api/memory/export``: the list's filters; ``kept`` is live or archived."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    format: Literal["json", "jsonl", "csv", "markdown"] = "json"
    api_key_id: Text = ""
    type: TypeName | None = None
    session_id: Text = ""
    q: Text = ""
    state: Literal["kept", "live", "hidden", "archived", "trash", "all"] = "kept"
    filters: Annotated[str, Field(description="JSON of a filter over metadata")] = ""
