"""The Playground answers why an expected memory is not there, and how words were cut."""

from __future__ import annotations

import pytest
from django.urls import reverse

from memory.models import ApiKey, Memory
from memory.principal import SYSTEM, Principal
from memory.services import settings as settings_service
from memory.tests.conftest import Remember, Work
from memory.tests.views.conftest import Studio

RESULTS = "playground-results"


@pytest.fixture
def kyoto(alice: Principal, remember: Remember) -> Memory:
    """The memory that is expected, beside two that answer better."""
    remember(alice, "likes green tea in the morning", key="tea")
    remember(alice, "drinks green tea", key="tea:2")
    return remember(alice, "went to Kyoto in April", key="kyoto", type="episodic")


def page(studio: Studio, query: str, mode: str = "keyword") -> str:
    return " ".join(studio.text(f"/playground/?mode={mode}&{query}", target=RESULTS).split())


def test_an_expected_memory_is_named_by_key_id_or_words(studio: Studio, kyoto: Memory) -> None:
    for name in ("kyoto", str(kyoto.pk), "went+to+Kyoto"):
        body = page(studio, f"q=green+tea&memory={name}")
        assert "lost at: lists" in body
        assert "It holds none of the query's words." in body.replace("&#x27;", "'")
        assert "finds none of the query" in body


def test_a_found_memory_says_its_rank(studio: Studio, kyoto: Memory) -> None:
    assert "It was found: hit 1." in page(studio, "q=Kyoto&memory=kyoto")


def test_several_memories_are_offered_to_choose_from(studio: Studio, kyoto: Memory) -> None:
    body = page(studio, "q=Kyoto&memory=green+tea")
    assert "Which one?" in body
    chosen = Memory.objects.get(key="tea:2")
    assert f"q=Kyoto&amp;memory={chosen.pk}" in body


@pytest.mark.parametrize("name", ["zebra", "00000000-0000-4000-8000-000000000000"])
def test_a_memory_that_is_not_there_is_said(studio: Studio, kyoto: Memory, name: str) -> None:
    assert "No memory has this id, key or text." in page(studio, f"q=tea&memory={name}")


def test_a_memorys_panel_leads_to_the_question(studio: Studio, kyoto: Memory) -> None:
    uid = ApiKey.objects.get(name="alice").uid
    address = f"{reverse('playground')}?memory={kyoto.pk}&amp;owner={uid}"
    assert address in studio.text(f"/?open={kyoto.pk}")
    asked = studio.text(address.replace("&amp;", "&"))
    assert "Type the query that should have found it" in asked
    assert f'value="{kyoto.pk}"' in asked


def test_a_memory_of_another_key_is_told_so(studio: Studio, kyoto: Memory, bob: Principal) -> None:
    uid = ApiKey.objects.get(name="bob").uid
    body = page(studio, f"q=Kyoto&memory={kyoto.pk}&owner={uid}")
    assert "It belongs to another API key" in body


def test_the_cut_of_the_query_shows_what_is_left_out(studio: Studio, kyoto: Memory) -> None:
    body = page(studio, "q=what+is+Node.js")
    assert "How the words were cut" in body
    assert "Code-like, whole" in body
    assert "Left out: says too little" in body
    assert "Latin script" in body


def test_the_cut_of_a_memory_marks_the_querys_words(studio: Studio, kyoto: Memory) -> None:
    body = page(studio, "q=Kyoto&memory=kyoto")
    assert "How this memory was cut" in body
    assert "term-met" in body


def test_a_budget_of_zero_says_so(studio: Studio, kyoto: Memory) -> None:
    body = page(studio, "q=green&budget=0")
    assert "The token budget is 0" in body
    assert "2 memories were found and left out" in body
    assert "No memory answers this" not in body


def test_nothing_relevant_is_an_outcome_with_what_was_nearest(
    studio: Studio, kyoto: Memory, work: Work
) -> None:
    work()
    settings_service.update(SYSTEM, {"relevanceFloor": 1.0})
    body = page(studio, "q=zebra+quagga&memory=kyoto", "hybrid")
    assert "Nothing relevant <code>below_floor</code>" in body
    assert "Nearest, but not relevant" in body
    assert "below the relevance floor" in body
    assert "lost at: relevance floor" in body
    assert "No memory answers this" not in body


def test_a_budget_that_cannot_be_is_said_and_not_swallowed(studio: Studio) -> None:
    assert "novalidate" in studio.text("/playground/")
    response = studio.get("/playground/?q=tea&budget=17000", target=RESULTS)
    assert response.status_code == 422
    assert "Token budget:" in response.content.decode()
