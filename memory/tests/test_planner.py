"""After much was embedded, a server plans with what its tables hold."""

from __future__ import annotations

import pytest
from django.db import connection

from memory import planner
from memory.models import Passage
from memory.principal import Principal
from memory.services import memories
from memory.services.drafts import MemoryDraft
from memory.tests.conftest import Work

is_server = connection.vendor == "postgresql"


def _expected_rows() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'memory_passage'")
        return float(cursor.fetchone()[0])


def test_a_server_looks_at_its_tables_after_a_job_that_embedded_much(
    alice: Principal, work: Work
) -> None:
    for number in range(planner.MANY):
        memories.create(alice, MemoryDraft(content=f"note {number}", key=f"note {number}"))
    work()
    assert Passage.objects.count() == planner.MANY
    assert not is_server or _expected_rows() >= planner.MANY


@pytest.mark.parametrize("rows", [0, planner.MANY - 1, planner.MANY])
def test_only_a_server_looks_and_only_after_much(rows: int, alice: Principal) -> None:
    assert planner.learn(rows) is (is_server and rows >= planner.MANY)
