"""Which hits fit into a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fitted:
    """One hit that goes in: its place among the hits offered, and the tokens it may use.

    ``is_truncated`` marks the first hit when it alone exceeds the budget: its text has to be cut
    to ``tokens``.
    """

    index: int
    tokens: int
    is_truncated: bool = False


def fit(tokens: Sequence[int], max_tokens: int) -> list[Fitted]:
    """Take hits in order while they fit; skip one that does not, later ones may still fit.

    The first hit is always kept, cut to the budget when it alone exceeds it. A budget of 0 keeps
    nothing.
    """
    if max_tokens <= 0:
        return []
    kept: list[Fitted] = []
    left = max_tokens
    for index, size in enumerate(tokens):
        if index == 0 and size > max_tokens:
            kept.append(Fitted(0, max_tokens, is_truncated=True))
            left = 0
        elif size <= left:
            kept.append(Fitted(index, size))
            left -= size
    return kept
