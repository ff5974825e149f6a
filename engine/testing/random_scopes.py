"""Random passages and scopes, for comparing a store with the SQL condition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.testing.contracts_vectors import NOW, passage
from engine.types import MemoryType, Passage, Scope, Vector


def cosine(a: Vector, b: Vector) -> float:
    """Cosine in double precision."""
    first, second = a.astype(np.float64), b.astype(np.float64)
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def random_passage(key: int, rng: np.random.Generator) -> Passage:
    """A passage of one of three owners, in a vault or not, whatever else."""
    pick: Callable[..., int] = lambda *options: options[int(rng.integers(len(options)))]  # noqa: E731
    base = passage(key, pick(1, 2, 3), memory_type=list(MemoryType)[pick(0, 1, 2, 3)])
    return Passage(
        **{
            **{name: getattr(base, name) for name in base.__slots__},
            "vault": (None, None, 5, 6)[pick(0, 1, 2, 3)],
            "session": ("", "s1", "s2")[pick(0, 1, 2)],
            "is_shared": pick(0, 0, 1) == 1,
            "is_pinned": pick(0, 0, 1) == 1,
            "is_archived": pick(0, 0, 0, 1) == 1,
            "retained_ms": pick(-5, 0, 400, 500, 600),
            "expires_ms": (None, NOW, NOW + 1)[pick(0, 1, 2)],
        }
    )


def random_scope(rng: np.random.Generator) -> Scope:
    """A scope over such passages, numbered from 1 to 400."""

    def chance() -> bool:
        return bool(rng.integers(2))

    numbers = [int(key) for key in rng.integers(1, 401, 30)]
    owners = [None, frozenset[int](), frozenset({1}), frozenset({2, 3})]
    return Scope(
        now_ms=NOW,
        owners=owners[int(rng.integers(4))],
        include_shared=chance(),
        vaults=frozenset({5}) if chance() else frozenset(),
        session="s1" if chance() else None,
        types=frozenset({MemoryType.FACTUAL, MemoryType.SEMANTIC}) if chance() else frozenset(),
        retained_after_ms={MemoryType.FACTUAL: 500, MemoryType.EPISODIC: 401} if chance() else {},
        excluded=frozenset(numbers) if chance() else frozenset(),
        only=frozenset(range(1, 401, 3)) if chance() and chance() else None,
    )
