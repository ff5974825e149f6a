"""Cosine and what may be compared. The numbers are ids of the cases, area ``cosine``."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import DimensionMismatch, ZeroVector
from engine.vectors.similarity import cosine, unit


@pytest.mark.parametrize(
    ("query", "document", "score"),
    [
        pytest.param((1, 0), (1, 0), 1.0, id="cosine-01"),
        pytest.param((1, 0), (0, 1), 0.0, id="cosine-02"),
        pytest.param((1, 0), (-1, 0), -1.0, id="cosine-03"),
        pytest.param((1, 2, 2), (2, 1, 2), 0.888888889, id="cosine-05"),
        pytest.param((1e-9, 0), (5e8, 0), 1.0, id="lengths do not matter"),
    ],
)
def test_cosine_of_two_vectors(
    query: tuple[float, ...], document: tuple[float, ...], score: float
) -> None:
    assert cosine(query, document) == pytest.approx(score, abs=1e-9)


def test_cosine_06_a_zero_vector_has_no_angle() -> None:
    with pytest.raises(ZeroVector) as caught:
        cosine((0, 0), (1, 0))
    assert caught.value.code == "zero_vector"


def test_cosine_07_dimensions_must_agree() -> None:
    with pytest.raises(DimensionMismatch) as caught:
        cosine((1, 0), (1, 0, 0))
    assert caught.value.code == "dimension_mismatch"


@pytest.mark.parametrize("bad", [(np.nan, 1.0), (np.inf, 1.0), (0.0, 0.0)])
def test_a_vector_without_direction_is_no_unit_vector(bad: tuple[float, float]) -> None:
    with pytest.raises(ZeroVector):
        unit(bad, 2)


def test_a_unit_vector_keeps_its_direction() -> None:
    assert unit((3, 4), 2).tolist() == pytest.approx([0.6, 0.8])
