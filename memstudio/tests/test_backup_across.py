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


def _do(place: Path, *arguments: str, url: str = "") -> str:
    variables = {"DATABASE_URL": url} if url else {}
    done = manage(place, *arguments, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _look(place: Path, url: str = "") -> dict[str, Any]:
    """What searches find first, and what waits after a new memory was stored."""
    answer: dict[str, Any] = json.loads(
        _do(place, "shell", "-c", FAKE + LOOK, url=url).rpartition("LOOK")[2]
    )
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
    url, small, big, back = server.create("moved"), *(tmp_path / name for name in ("a", "b", "c"))
    files = [tmp_path / f"{number}.zip" for number in range(3)]
    _do(small, "shell", "-c", FAKE + MIGRATE + FILL)
    _do(small, "backup", str(files[0]), "--with-vectors", "--with-keys")
    assert "600 memories" in _do(big, "restore", str(files[0]), url=url)
    _do(big, "backup", str(files[1]), "--with-vectors", "--with-keys", url=url)
    before = _contents(files[0])
    assert len(before["tables/memory.Memory.jsonl"]) == 600
    assert sum(len(rows) for name, rows in before.items() if name.startswith("vectors/")) == 600
    _same(before, _contents(files[1]))
    found = _look(small)
    assert (found["keyword"], found["marks"]) == ("note7 of tea 茶", 1)
    assert _look(big, url=url) == found
    assert "600 memories" in _do(back, "restore", str(files[1]))
    _do(back, "backup", str(files[2]), "--with-vectors", "--with-keys")
    _same(before, _contents(files[2]))
    assert _look(back) == found
