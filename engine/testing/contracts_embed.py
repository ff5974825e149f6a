"""What every embedding source keeps. Subclass, and give a ``source`` fixture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from engine.protocols import EmbeddingSource
from engine.types import Matrix, Purpose

SENTENCES = (
    "The staging server listens on port 5433.",
    "小明喜欢喝咖啡，不喜欢茶。",
    "東京タワーの近くに住んでいます。",
    "Je préfère travailler le matin.",
)
ODD = (
    "",
    "   \n\t ",
    "\0",
    "before\0after",
    "😀👩‍👩‍👧‍👦",
    "a\u0301\u0301\u0301 \u200b\u200d\ufeff",
    "\ud800 lone surrogate",
    "\U000e0001 tag",
    "word " * 20_000,
    "字" * 100_000,
    " " * 100_000 + "end",
)
TOLERANCE = 1e-4
"""Padding beside longer texts may move a value by this much."""


class EmbeddingSourceContract:
    """Tests of the protocol ``EmbeddingSource``."""

    @pytest.fixture
    def source(self) -> EmbeddingSource:
        """The source under test; subclasses override it."""
        pytest.fail("the subclass gives the source")

    def test_rows_are_unit_float32_of_the_signatures_dimension(
        self, source: EmbeddingSource
    ) -> None:
        rows = source.embed(SENTENCES, purpose=Purpose.DOCUMENT)
        assert_unit(rows, (len(SENTENCES), source.signature.dim))

    def test_no_text_gives_no_row(self, source: EmbeddingSource) -> None:
        assert source.embed([], purpose=Purpose.QUERY).shape == (0, source.signature.dim)

    @pytest.mark.parametrize("purpose", list(Purpose))
    def test_odd_texts_give_unit_rows(self, source: EmbeddingSource, purpose: Purpose) -> None:
        rows = source.embed(ODD, purpose=purpose)
        assert_unit(rows, (len(ODD), source.signature.dim))

    def test_the_same_text_gives_the_same_vector(self, source: EmbeddingSource) -> None:
        first = source.embed(SENTENCES[:1], purpose=Purpose.DOCUMENT)
        again = source.embed(SENTENCES[:1], purpose=Purpose.DOCUMENT)
        assert np.array_equal(first, again)

    def test_a_text_alone_and_among_others_is_the_same(self, source: EmbeddingSource) -> None:
        texts = [*SENTENCES, "a much longer text " * 30, "short"]
        together = source.embed(texts, purpose=Purpose.DOCUMENT)
        alone = [source.embed([text], purpose=Purpose.DOCUMENT)[0] for text in texts]
        assert np.abs(together - np.stack(alone)).max() < TOLERANCE

    def test_a_query_finds_its_text(self, source: EmbeddingSource) -> None:
        rows = source.embed(SENTENCES, purpose=Purpose.DOCUMENT)
        query = source.embed(["port of the staging server"], purpose=Purpose.QUERY)[0]
        assert int(np.argmax(rows @ query)) == 0

    def test_embedding_resolve_13_the_signature_stays(self, source: EmbeddingSource) -> None:
        before = source.signature
        source.embed(SENTENCES[:1], purpose=Purpose.QUERY)
        assert source.signature == before
        assert before.source == source.name
        assert before.model == source.model

    def test_threads_get_what_one_caller_gets(self, source: EmbeddingSource) -> None:
        expected = [source.embed([text], purpose=Purpose.QUERY) for text in SENTENCES]
        with ThreadPoolExecutor(4) as pool:
            found = list(
                pool.map(lambda text: source.embed([text], purpose=Purpose.QUERY), SENTENCES * 3)
            )
        for rows, wanted in zip(found, expected * 3, strict=True):
            assert np.allclose(rows, wanted, atol=TOLERANCE)

    def test_health_tells_that_it_works(self, source: EmbeddingSource) -> None:
        health = source.health()
        assert (health.available, health.reason) == (True, "")


def assert_unit(rows: Matrix, shape: tuple[int, int]) -> None:
    """Rows of unit length in float32 of the given shape."""
    assert rows.shape == shape
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
