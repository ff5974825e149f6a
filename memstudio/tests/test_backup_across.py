"""A backup moves a studio from SQLite to Postgres and back, with its vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.testing import postgres_server
from engine.testing.postgres_server import PostgresServer
from memory.backup.archive import ArchiveReader
from memstudio.tests.test_backup_commands import MIGRATE, manage

FAKE = """
from django.conf import settings as django_settings
django_settings.MEMORY_LOCAL_SOURCES = {"multilingual-e5-small": "memory.tests.sources.fake"}
"""
CALL = "from django.core.management import call_command\n"
FILL = """
from memory import jobs
from memory.models import Job
from memory.principal import SYSTEM
from memory.services import exchange, memories, settings, signin
from memory.tasks import HANDLERS
signin.first_start()
texts = [f"note{n} of tea 茶" for n in range(600)]
records = [{"content": text, "key": text, "metadata": {"n": 0.5}} for text in texts]
exchange.import_records(SYSTEM, records, owner=None)
settings.update(SYSTEM, {"customApiKey": "s3cret"})
while job := Job.objects.filter(state="queued").first():
    jobs.run(job.pk, HANDLERS)
"""
LOOK = """
import json
from engine.types import Mode
from memory import jobs
from memory.models import Job, VectorMark
from memory.principal import SYSTEM
from memory.services import access, memories
from memory.services.drafts import MemoryDraft
from memory.services.retrieval import RetrieveRequest, retrieve
def found(mode):
    view = retrieve(SYSTEM, RetrieveRequest("note7", mode=mode, all_owners=True))
    return [view.memories[hit.passage.parent].content for hit in view.retrieval.hits][0]
seen = {mode.value: found(mode) for mode in (Mode.KEYWORD, Mode.VECTOR)}
memories.create(SYSTEM, MemoryDraft(content="a new one", key="new"))
print("LOOK" + json.dumps({**seen, "marks": VectorMark.objects.count()}))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A Postgres of our own."""
    with postgres_server.running() as server:
        yield server


def _look(place: Path, file: Path, *before: str, url: str = "") -> dict[str, Any]:
    """After some steps write a backup; what searches then find first, and what waits after a write.

    All in one process, because each takes seconds to start.
    """
    backup = f'call_command("backup", "{file}", with_vectors=True, with_keys=True)\n'
    script = "".join([FAKE, CALL, *before, backup, LOOK])
    done = manage(place, "shell", "-c", script, **({"DATABASE_URL": url} if url else {}))
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.rpartition("LOOK")[2])
    return answer


def _contents(path: Path) -> dict[str, list[Any]]:
    """Every row of an archive, but for the audit rows of backup and restore."""
    with ArchiveReader(path) as archive:
        archive.verify()
        return {
            member.name: [row for row in archive.lines(member) if "database." not in str(row)]
            for member in archive.manifest.members
            if member.table or member.index
        }


def _same(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> None:
    """Vectors came through a normalisation; everything else is the same to the letter."""
    assert one.keys() == other.keys()
    for name in one:
        if name.startswith("vectors/"):
            assert [row[:3] for row in one[name]] == [row[:3] for row in other[name]]
        else:
            assert one[name] == other[name], name


def test_from_sqlite_to_postgres_and_back(server: PostgresServer, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.zip" for number in range(3)]
    restores = [f'call_command("restore", "{file}")\n' for file in files]
    found = _look(tmp_path / "small", files[0], MIGRATE, FILL)
    assert (found["keyword"], found["marks"]) == ("note7 of tea 茶", 1)
    before = _contents(files[0])
    assert len(before["tables/memory.Memory.jsonl"]) == 600
    assert sum(len(rows) for name, rows in before.items() if name.startswith("vectors/")) == 600
    assert _look(tmp_path / "big", files[1], restores[0], url=server.create("moved")) == found
    _same(before, _contents(files[1]))
    assert _look(tmp_path / "back", files[2], restores[1]) == found
    _same(before, _contents(files[2]))
