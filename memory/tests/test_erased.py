"""What is erased for good leaves the files of both indexes as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.models import Memory, VectorIndex
from memory.principal import Principal
from memory.services import housekeeping, memories
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember, Work

Committing = Any


@pytest.fixture
def kept(
    alice: Principal, remember: Remember, work: Work, settings: Any, tmp_path: Path
) -> Iterator[tuple[Memory, list[Path]]]:
    """A memory, and files of both indexes as a long run would have left them."""
    settings.MEMORY_STUDIO_HOME = tmp_path
    memory = remember(alice, "the code of the safe is 4711")
    work()
    terms = tmp_path / "cache" / "keyword" / f"owner-{alice.owner}.postings"
    vectors = tmp_path / "vectors" / f"{VectorIndex.objects.get().pk}-abc" / "matrix.npy"
    for path in (terms, vectors):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"safe")
    yield memory, [terms, vectors]


def _left(kept: tuple[Memory, list[Path]]) -> list[Path]:
    return [path for path in kept[1] if path.exists()]


def test_the_trash_keeps_the_files(alice: Principal, kept: tuple[Memory, list[Path]]) -> None:
    memories.delete(alice, kept[0].pk)
    assert _left(kept) == kept[1]


def test_a_purge_removes_them_before_and_after_the_commit(
    alice: Principal,
    kept: tuple[Memory, list[Path]],
    django_capture_on_commit_callbacks: Committing,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        memories.delete(alice, kept[0].pk, purge=True)
        assert _left(kept) == []
        kept[1][0].write_bytes(b"made again by another process from what it still saw")
    assert _left(kept) == []


def test_so_does_the_end_of_the_trash(alice: Principal, kept: tuple[Memory, list[Path]]) -> None:
    memories.delete(alice, kept[0].pk)
    Memory.objects.update(trashed_at=days_ago(31))
    assert housekeeping.purge_trash() == 1
    assert _left(kept) == []


def test_a_start_removes_the_vectors_of_an_index_that_is_no_more(
    kept: tuple[Memory, list[Path]], tmp_path: Path
) -> None:
    orphan = tmp_path / "vectors" / "9999-abc"
    orphan.mkdir()
    housekeeping.start()
    assert not orphan.exists()
    assert _left(kept) == kept[1]
