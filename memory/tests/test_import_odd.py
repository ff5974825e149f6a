"""Whatever a file holds, an import stores it or says why not."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.exchange.read import Format
from memory.principal import SYSTEM
from memory.services import exchange
from memory.services.import_store import ImportOrder

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "a", "\x00", "\ud800", "2025-05-04", "9" * 40, "x" * 501]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "memory", "\x00"]), inner, max_size=2)
    ),
    max_leaves=4,
)
RECORDS = st.dictionaries(
    st.sampled_from(
        [
            "id",
            "content",
            "memory",
            "type",
            "name",
            "observations",
            "from",
            "to",
            "relationType",
            "state",
            "categories",
            "metadata",
            "created_at",
            "run_id",
            "conversations_memory",
            "project_memories",
            "data",
            "user_id",
        ]
    ),
    VALUES,
    max_size=7,
)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(record=RECORDS, wanted=st.sampled_from([f for f in Format if f not in ("csv", "markdown")]))
def test_the_words_of_other_systems_with_odd_values(
    first_start: None, record: dict[str, Any], wanted: str
) -> None:
    text = json.dumps([record, {"content": "good", "memory": "good"}]).encode()
    order = ImportOrder(format=wanted)
    dry = exchange.import_file(SYSTEM, io.BytesIO(text), ImportOrder(format=wanted, dry_run=True))
    real = exchange.import_file(SYSTEM, io.BytesIO(text), order)
    assert (dry.imported, dry.updated, dry.same, dry.skipped) == (
        real.imported,
        real.updated,
        real.same,
        real.skipped,
    )
    assert real.total == real.imported + real.updated + real.same + real.skipped
    json.dumps(real.as_json(), allow_nan=False)
    again = exchange.import_file(SYSTEM, io.BytesIO(text), order)
    assert (again.imported, again.skipped) == (0, real.skipped)
