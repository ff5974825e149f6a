"""Reasons of the engine reach people in their own language, by code."""

from __future__ import annotations

import pytest
from django.utils import translation

from engine.types import Degraded, Health
from memory.services.degraded import explain, explain_health, note_text


def test_a_fault_names_its_error_in_every_language() -> None:
    health = Health(False, "A search failed: X.", {"code": "search_failed", "error": "X"})
    assert explain_health(health) == "A search failed (X)."
    with translation.override("ja"):
        assert explain_health(health) == "検索に失敗しました（X）。"


def test_a_healthy_tier_has_no_reason() -> None:
    assert explain_health(Health(True, detail={"code": ""})) == ""


def test_a_reason_without_a_known_code_is_told_as_it_is() -> None:
    assert explain_health(Health(False, "Odd.", {"code": "odd"})) == "Odd."
    assert explain_health(Health(False, "Odd.")) == "Odd."


def test_an_embedding_code_of_a_health_check_is_explained() -> None:
    health = Health(False, "slow", {"code": "timeout"})
    assert explain_health(health) == "The embedding service did not answer in time."


@pytest.mark.parametrize(
    ("note", "text"),
    [
        ("", ""),
        ("scores", "normalised scores"),
        ("rrf k=60", "reciprocal ranks, k = 60"),
        ("timeout", "The embedding service did not answer in time."),
        ("0.712 / 0.800", "0.712 / 0.800"),
    ],
)
def test_notes_of_stages_are_told_in_words(note: str, text: str) -> None:
    assert note_text(note) == text


def test_a_reranker_that_fails_is_not_taken_for_an_embedding_service() -> None:
    text = explain(Degraded("rerank", "timeout", "slow"))
    assert text == "The rerank service did not answer in time. Hits keep the order they had."
