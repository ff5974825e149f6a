"""Batches and filters while another backend holds the truth."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memory.models import AuditEntry, Memory
from memory.principal import Principal
from memory.services import batches, listing
from memory.services.batches import Change, Create, Remove
from memory.services.drafts import MemoryDraft
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.backends import Brain, brain, configure


@pytest.fixture
def primary(first_start: None) -> Iterator[Brain]:
    """A service that is primary."""
    with brain() as running:
        configure("brain", brain=running.config)
        yield running


def _tea(principal: Principal, *names: str) -> list[str]:
    items = [Create(MemoryDraft(f"tea {name}", name, metadata={"n": name})) for name in names]
    return [str(outcome.memory_id) for outcome in batches.carry_out(principal, items)]


def test_the_primary_is_told_of_each_item(primary: Brain, alice: Principal) -> None:
    green, black = _tea(alice, "green", "black")
    batches.carry_out(alice, [Change(green, {"content": "mint"}), Remove(black)])
    assert [row["content"] for row in primary.service.rows.values()] == ["mint"]
    assert Memory.objects.get(pk=green).content == "mint"


def test_what_the_primary_refuses_fails_in_its_place(primary: Brain, alice: Principal) -> None:
    (green,) = _tea(alice, "green")
    AuditEntry.objects.all().delete()
    primary.goes_down()
    outcomes = batches.carry_out(alice, [Remove(green), Create(MemoryDraft("tea", "black"))])
    assert [outcome.error and outcome.error.code for outcome in outcomes] == [
        "backend_unreachable",
        "backend_unreachable",
    ]
    assert list(Memory.objects.values_list("key", "trashed_at")) == [("green", None)]
    assert not AuditEntry.objects.filter(action="memory.batch").exists()


def test_the_mirror_answers_what_is_filtered(primary: Brain, alice: Principal) -> None:
    _tea(alice, "green", "black")
    calls = len(primary.calls)
    page = listing.list_page(alice, listing.MemoryFilter(metadata={"n": "green"}))
    view = retrieve(alice, RetrieveRequest("tea", filters={"n": {"ne": "green"}}))
    assert [row.memory.key for row in page.rows] == ["green"]
    assert [memory.key for memory in view.memories.values()] == ["black"]
    assert len(primary.calls) == calls
