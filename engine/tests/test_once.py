"""What is made on first use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from engine.once import Once


def test_it_is_made_when_first_asked_for_and_never_again() -> None:
    numbers = iter(range(3))
    once = Once(lambda: next(numbers))
    assert not once.is_made
    assert (once.get(), once.get(), once.is_made) == (0, 0, True)


def test_threads_that_ask_together_get_one_value() -> None:
    together = Barrier(8)
    once = Once(object)

    def ask(_place: int) -> object:
        together.wait(timeout=10)
        return once.get()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1


def test_after_a_failure_the_next_one_tries_again() -> None:
    failures = [OSError("disk")]

    def make() -> str:
        if failures:
            raise failures.pop()
        return "made"

    once = Once(make)
    with pytest.raises(OSError, match="disk"):
        once.get()
    assert not once.is_made
    assert once.get() == "made"
