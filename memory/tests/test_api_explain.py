"""``/api/memory/tokenizer-lens`` and ``/api/memory/why-not``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory.principal import SYSTEM
from memory.services import settings as settings_service
from memory.tests.conftest import Work
from memory.tests.rest import MISSING, refusal

Api = Callable[..., Any]
LENS = "/api/memory/tokenizer-lens"
WHY = "/api/memory/why-not"


@pytest.fixture
def alice(api: Api) -> Any:
    """A client that owns what it writes."""
    return api("alice")


def stored(client: Any, content: str) -> str:
    return str(
        client.call("POST", "/api/memory", {"content": content, "key": content}).json()["id"]
    )


def test_the_lens_tells_terms_kinds_and_places(alice: Any) -> None:
    answer = alice.call("POST", LENS, {"text": "What is Node.js?"}).json()
    assert (answer["folded"], answer["language"]) == ("what is node.js?", "latin")
    assert answer["terms"] == ["node.js", "node", "js"]
    assert answer["tokens"][0] == {
        "text": "What",
        "term": "what",
        "kind": "stop",
        "start": 0,
        "end": 4,
        "indexed": False,
    }
    assert [token["kind"] for token in answer["tokens"]] == [
        "stop",
        "stop",
        "code-whole",
        "code-part",
        "code-part",
    ]
    document = alice.call("POST", LENS, {"text": "What is it", "purpose": "document"}).json()
    assert all(token["indexed"] for token in document["tokens"])


def test_the_lens_has_bounds(alice: Any) -> None:
    error = refusal(alice.call("POST", LENS, {"text": "a" * 8001}), 422, "invalid")
    assert list(error["fields"]) == ["text"]
    refusal(alice.call("POST", LENS, {"text": "a", "purpose": "poem"}), 422, "invalid")
    assert alice.call("POST", LENS, {"text": ""}).json()["tokens"] == []


def test_why_not_tells_stage_reason_numbers_and_hints(alice: Any) -> None:
    stored(alice, "green tea, green tea")
    expected = stored(alice, "a green field far behind the hills")
    body = {"query": "green tea", "strategy": "exact", "limit": 1, "memoryId": expected}
    answer = alice.call("POST", WHY, body).json()
    assert (answer["found"], answer["rank"]) == (False, None)
    assert (answer["stage"], answer["reason"]) == ("limit", "limit")
    assert answer["detail"]["rank"] == 2
    assert answer["detail"]["lastRank"] == 1
    assert answer["detail"]["shortBy"] > 0
    assert answer["detail"]["matchedTerms"] == ["green"]
    assert answer["detail"]["missingTerms"] == ["tea"]
    assert answer["detail"]["lists"][0]["name"] == "keyword"
    assert answer["hints"][0]["code"] == "raise_limit"
    assert answer["resolution"]["strategyUsed"] == "exact"


def test_a_found_memory_has_its_rank(alice: Any) -> None:
    body = {"query": "green tea", "strategy": "exact", "memoryId": stored(alice, "green tea")}
    answer = alice.call("POST", WHY, body).json()
    assert (answer["found"], answer["rank"], answer["stage"]) == (True, 1, None)


def test_what_another_owner_holds_is_not_told(alice: Any, api: Api) -> None:
    theirs = stored(api("bob"), "green tea")
    for memory_id in (theirs, MISSING, "nonsense"):
        refusal(alice.call("POST", WHY, {"query": "tea", "memoryId": memory_id}), 404, "not_found")


def test_match_modes_narrow_a_preview(alice: Any) -> None:
    stored(alice, "green apples")
    stored(alice, "green tea")
    stored(alice, "tea that is green")
    path = "/api/memory/retrieve-preview"
    counts = {
        match: len(
            alice.call(
                "POST", path, {"query": "green tea", "strategy": "exact", "match": match}
            ).json()["memories"]
        )
        for match in ("any", "all", "phrase")
    }
    assert counts == {"any": 3, "all": 2, "phrase": 1}


def test_nothing_relevant_is_an_answer_that_says_what_was_nearest(alice: Any, work: Work) -> None:
    expected = stored(alice, "went to Kyoto")
    work()
    settings_service.update(SYSTEM, {"relevanceFloor": 1.0})
    body = {"query": "zebra quagga", "strategy": "hybrid"}
    answer = alice.call("POST", "/api/memory/retrieve-preview", body).json()
    assert (answer["memories"], answer["emptyReason"]) == ([], "below_floor")
    assert answer["nearest"][0]["id"] == expected
    assert answer["nearest"][0]["score"] < 1
    told = alice.call("POST", WHY, {**body, "memoryId": expected}).json()
    assert (told["stage"], told["reason"]) == ("floor", "below_floor")
    assert told["detail"]["lastScore"] == 1.0


def test_a_preview_says_which_reranker_ran(alice: Any) -> None:
    stored(alice, "green tea")
    stored(alice, "black tea")
    settings_service.update(SYSTEM, {"rerankEnabled": True})
    body = {"query": "green tea", "strategy": "exact"}
    answer = alice.call("POST", "/api/memory/retrieve-preview", body).json()
    assert answer["resolution"]["rerankApplied"] is True
    assert answer["resolution"]["reranker"] == "light"
    assert answer["memories"][0]["rerankScore"] is not None
    assert answer["emptyReason"] is None
