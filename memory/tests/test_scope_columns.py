"""The scope columns are one contract: models, SQL, the in-memory index and the ORM agree."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
import pytest
from django.db.models import Q
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import scope_sql
from engine.database import dialect_of
from engine.types import MemoryType, Scope, Signature
from engine.vectors.in_process import InProcessIndex
from memory import wiring
from memory.models import ApiKey, Passage, PassageChange
from memory.passage_reader import PassageReader
from memory.principal import SYSTEM
from memory.services import keys

NOW = 1_000
TIMES = st.integers(NOW - 3, NOW + 3)


def _columns(sql: str, table: str) -> set[str]:
    database = sqlite3.connect(":memory:")
    database.execute(sql)
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}


@pytest.mark.parametrize(
    ("sql", "table", "model"),
    [
        (scope_sql.CREATE_TABLE, scope_sql.TABLE, Passage),
        (scope_sql.CREATE_CHANGES, scope_sql.CHANGES, PassageChange),
    ],
    ids=["passages", "changes"],
)
def test_the_engines_columns_are_columns_of_the_model(sql: str, table: str, model: Any) -> None:
    assert model._meta.db_table == table
    ours = {field.column for field in model._meta.get_fields() if getattr(field, "column", None)}
    assert _columns(sql, table) <= ours


def test_the_change_log_never_uses_an_id_again(db: None) -> None:
    first = PassageChange.objects.create(passage_id=1).pk
    PassageChange.objects.all().delete()
    assert PassageChange.objects.create(passage_id=1).pk > first


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "owner": st.integers(0, 2),
            "vault_id": st.sampled_from([None, None, None, 7, 8]),
            "session": st.sampled_from(["", "s1", "s2"]),
            "type": st.sampled_from([kind.value for kind in MemoryType]),
            "is_shared": st.booleans(),
            "is_pinned": st.booleans(),
            "is_archived": st.booleans(),
            "retained_ms": TIMES,
            "expires_ms": st.none() | TIMES,
        }
    ),
    min_size=1,
    max_size=12,
)
SCOPES = st.fixed_dictionaries(
    {
        "owners": st.none() | st.frozensets(st.integers(0, 2), max_size=2),
        "include_shared": st.booleans(),
        "vaults": st.frozensets(st.sampled_from([7, 8]), max_size=2),
        "session": st.sampled_from([None, "s1", ""]),
        "types": st.frozensets(st.sampled_from(list(MemoryType)), max_size=2),
        "retained_after_ms": st.dictionaries(st.sampled_from(list(MemoryType)), TIMES, max_size=4),
        "excluded": st.frozensets(st.integers(0, 11), max_size=2),
    }
)


def _orm(scope: Scope) -> set[int]:
    """The scope as a filter of the ORM, written from its description alone."""
    visible = Q(pk__in=[])
    if scope.owners is None:
        visible |= Q(vault_id__isnull=True)
    else:
        visible |= Q(vault_id__isnull=True, owner__in=scope.owners)
    if scope.include_shared:
        visible |= Q(vault_id__isnull=True, is_shared=True)
    visible |= Q(vault_id__in=scope.vaults)
    hidden = Q(pk__in=scope.excluded) | Q(is_archived=True) | Q(expires_ms__lte=scope.now_ms)
    for kind, cutoff in scope.retained_after_ms.items():
        hidden |= Q(type=kind.value, retained_ms__lt=cutoff, is_pinned=False)
    rows = Passage.objects.filter(visible).exclude(hidden)
    if scope.session is not None:
        rows = rows.filter(session=scope.session)
    if scope.types:
        rows = rows.filter(type__in=[kind.value for kind in scope.types])
    return set(rows.values_list("pk", flat=True))


@pytest.fixture
def three_owners(first_start: None) -> list[int]:
    """Primary keys of three API keys."""
    return [keys.create(SYSTEM, name)[0].pk for name in ("a", "b", "c")]


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=ROWS, asked=SCOPES)
def test_sql_the_flat_index_and_the_orm_see_the_same_passages(
    three_owners: list[int], rows: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    Passage.objects.all().delete()
    ids = [
        Passage.objects.create(
            **{**row, "owner": ApiKey.objects.get(pk=three_owners[row["owner"]])},
            text_hash="",
            keyword_hash="",
            created_ms=place,
        ).pk
        for place, row in enumerate(rows)
    ]
    owners = asked["owners"]
    scope = Scope(
        now_ms=NOW,
        **{
            **asked,
            "owners": None if owners is None else frozenset(three_owners[i] for i in owners),
            "excluded": frozenset(ids[i] for i in asked["excluded"] if i < len(ids)),
        },
    )
    condition, params = scope_sql.where(scope, dialect=dialect_of(wiring.connect()))
    query = " ".join(("SELECT p.id FROM", scope_sql.TABLE, "p WHERE", condition))
    by_sql = {row[0] for row in wiring.connect().execute(query, params).fetchall()}
    assert by_sql == _orm(scope)
    assert set(PassageReader().recent(scope, 100)) == by_sql
    store = InProcessIndex(wiring.connect, signature=Signature("t", "t", "1", 2), index_id=99)
    store.ensure()
    vector = np.array([1, 0], np.float32)
    store.upsert(dict.fromkeys(ids, vector), hashes=dict.fromkeys(ids, ""))
    assert {hit.passage_id for hit in store.search(vector, scope=scope, limit=100)} == by_sql
