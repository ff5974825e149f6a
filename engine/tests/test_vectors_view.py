"""How a search goes about a block: by its graph, or by a scan where the graph cannot serve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from engine.columns.table import decode
from engine.testing.contracts_vectors import NOW
from engine.types import Matrix, MemoryType, Scope, Vector
from engine.vectors.arrange import Tuning, arranged
from engine.vectors.base import Words, owner_block
from engine.vectors.graph import Graph
from engine.vectors.segment import coarsen, dots
from engine.vectors.state import Options, State
from engine.vectors.view import View

DIM, ROWS, BIG, SMALL = 24, 900, 1, 2
OF_BIG = Scope(now_ms=NOW, owners=frozenset({BIG}))


@dataclass(frozen=True)
class Matches:
    keys: np.ndarray[tuple[int], np.dtype[np.uint64]]
    distances: Vector


@dataclass
class CountingIndex:
    """A graph that knows everything, and counts how often it is asked."""

    matrix: Matrix
    asked: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.matrix)

    def search(self, query: Vector, count: int, *, threads: int) -> Matches:
        self.asked.append(count)
        scores = self.matrix @ query
        order = np.argsort(-scores, kind="stable")[:count]
        return Matches(order.astype(np.uint64), 1 - scores[order])


def vectors(rows: int = ROWS) -> Matrix:
    drawn = np.random.default_rng(1).standard_normal((rows, DIM)).astype(np.float32)
    scaled: Matrix = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return scaled


def view_of(matrix: Matrix) -> tuple[View, CountingIndex]:
    """A view of one large block, with a graph that counts. Every tenth passage is factual."""
    state = State(DIM, Options(tuning=Tuning(large=10_000, proposal=3)))
    types = [MemoryType.EPISODIC] * 9 + [MemoryType.FACTUAL]
    state.put(
        [
            (
                *(key, BIG, -1, f"s{key % 20}", types[key % 10], False, False, False, NOW, NOW * 2),
                *(matrix[key].tobytes(), "latin"),
            )
            for key in range(len(matrix))
        ]
    )
    view = state.view()
    base = arranged(view, Tuning(large=10_000), target=None, stopped=lambda: False)
    index = CountingIndex(matrix)
    graph = Graph(index, None, len(matrix))
    base = replace(base, graphs={owner_block(BIG): graph})
    return replace(view, base=base, tail=view.tail.part(slice(0, 0))), index


def best(matrix: Matrix, query: Vector, limit: int, allowed: Callable[[int], bool]) -> list[int]:
    keys = [key for key in range(len(matrix)) if allowed(key)]
    return sorted(keys, key=lambda key: -float(matrix[key] @ query))[:limit]


CASES: list[tuple[str, Scope, int, int, Callable[[int], bool]]] = [
    ("the whole block", OF_BIG, 10, 1, lambda key: True),
    ("a tenth is asked for more", replace(OF_BIG, types=frozenset({MemoryType.FACTUAL})), 10, 2,
     lambda key: key % 10 == 9),
    ("a session is scanned", replace(OF_BIG, session="s3"), 10, 0, lambda key: key % 20 == 3),
    ("a long list is scanned", OF_BIG, 101, 0, lambda key: True),
    ("nothing left is scanned for once", replace(OF_BIG, types=frozenset({MemoryType.SEMANTIC})),
     10, 1, lambda key: False),
    ("excluded ones are made up for", replace(OF_BIG, excluded=frozenset(range(300))), 10, 1,
     lambda key: key >= 300),
    ("every owner", replace(OF_BIG, owners=None), 10, 0, lambda key: True),
    ("another owner", replace(OF_BIG, owners=frozenset({SMALL})), 10, 0, lambda key: False),
]  # fmt: skip


@pytest.mark.parametrize(("scope", "limit", "asked", "allowed"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])  # fmt: skip
def test_every_way_finds_the_best(
    scope: Scope, limit: int, asked: int, allowed: Callable[[int], bool]
) -> None:
    matrix = vectors()
    view, index = view_of(matrix)
    query = vectors(ROWS + 1)[-1]
    found = [hit.passage_id for hit in view.search(query, scope, limit, "")]
    assert found == best(matrix, query, limit, allowed)
    assert len(index.asked) == asked


def test_equal_vectors_at_the_edge_of_what_a_graph_proposes_are_scanned_for() -> None:
    matrix = vectors()
    matrix[100:800] = matrix[100]
    view, index = view_of(matrix)
    found = view.search(matrix[100], OF_BIG, 20, "")
    assert [hit.passage_id for hit in found] == list(range(100, 120))
    assert len(index.asked) == 1


def test_a_graph_of_another_centring_is_not_asked_for_plain_cosines() -> None:
    view, index = view_of(vectors())
    query = vectors()[5]
    assert view.search(query, OF_BIG, 1, "")[0].passage_id == 5
    assert index.asked == [33]
    state = State(DIM, Options(centred=True))
    centred = replace(view, centres=state.view().centres)
    assert centred.search(query, OF_BIG, 1, "")[0].passage_id == 5
    assert index.asked == [33]


def test_coarse_products_are_exact_and_near_the_whole_ones() -> None:
    matrix = vectors()
    shift = matrix.mean(axis=0)
    coarse, step = np.empty(matrix.shape, np.int8), np.empty(ROWS, np.float32)
    coarsen(matrix, shift, coarse, step)
    assert np.abs(coarse * step[:, None] + shift - matrix).max() <= step.max() / 2 + 1e-6
    assert np.abs(coarse).max(axis=1).tolist() == [127] * ROWS
    wanted = coarse[:50].astype(np.int64) @ coarse[7].astype(np.int64)
    assert dots(coarse[:50], coarse[7]).tolist() == wanted.tolist()
    assert dots(coarse[:0], coarse[7]).size == 0


def test_words_out_of_a_copy_do_not_grow_with_the_original() -> None:
    words = Words()
    copied = words.copy()
    decode([(1, BIG, -1, "s", "factual", 0, 0, 0, NOW, NOW)], words.types, words.sessions)
    assert (copied.types, copied.sessions) == ({}, {})
    assert (words.types, words.sessions) == ({"factual": 0}, {"s": 0})
