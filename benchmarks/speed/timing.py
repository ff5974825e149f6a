"""Times of many searches, taken in turn so that a noisy moment of the machine hits them all.

Wall time is what people wait for. The processor time of the calling thread says what a search
costs; it hardly changes when the machine is busy with something else.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

from threadpoolctl import ThreadpoolController

from memory.evaluation.measures import percentile

Ask = Callable[[int], object]
"""Carries out one search by the number of its question."""

BLOCK = 20
SLOW_MS = 100.0
SLOW_SHARE = 5
"""Of an engine that takes longer than ``SLOW_MS``, every fifth question is timed."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What is timed. ``one_thread`` keeps BLAS to the calling thread: on a busy machine a product
    of two threads waits for the slower one, fifty times as long as it takes."""

    ask: Ask
    one_thread: bool = False


@dataclass(frozen=True, slots=True)
class Took:
    """Milliseconds of one search: on the wall clock, and of the processor."""

    wall: float
    cpu: float


@dataclass(slots=True)
class Times:
    """What the searches of one engine took."""

    searches: list[Took] = field(default_factory=list)

    def share(self, part: float) -> float:
        """A percentile of wall time; ``part`` from 0 to 1."""
        found: float = percentile([took.wall for took in self.searches], part)
        return found

    @property
    def cpu(self) -> float:
        """The median of processor time."""
        return statistics.median(took.cpu for took in self.searches)


def in_turn(engines: dict[str, Engine], questions: int) -> dict[str, Times]:
    """Ask every engine the same questions, a block at a time, each block by every engine.

    Before a block an engine is asked its last question once untimed, which the other engines may
    have pushed out of the caches of the processor.
    """
    slow = {name: _slow(engine.ask) for name, engine in engines.items()}
    blas = ThreadpoolController()
    times = {name: Times() for name in engines}
    for start in range(0, questions, BLOCK):
        block = range(start, min(start + BLOCK, questions))
        for name, engine in engines.items():
            chosen = block[::SLOW_SHARE] if slow[name] else block
            with blas.limit(limits=1) if engine.one_thread else nullcontext():
                engine.ask(block[-1])
                took = [timed(partial(engine.ask, number)) for number in chosen]
            times[name].searches.extend(took)
    return times


@dataclass(frozen=True, slots=True)
class Load:
    """How many threads ask for how long; each calls ``leave`` with its number at its end."""

    threads: int
    seconds: float
    leave: Ask


def per_second(ask: Ask, questions: int, load: Load) -> float:
    """How many searches all threads together finish in a second."""
    stop = threading.Event()

    def work(place: int) -> int:
        done, number = 0, place * questions // load.threads
        try:
            while not stop.is_set():
                ask((number + done) % questions)
                done += 1
        finally:
            load.leave(place)
        return done

    with ThreadPoolExecutor(load.threads) as pool:
        started = time.perf_counter()
        workers = [pool.submit(work, place) for place in range(load.threads)]
        stop.wait(load.seconds)
        stop.set()
        done = sum(worker.result() for worker in workers)
        return done / (time.perf_counter() - started)


def timed(work: Callable[[], object]) -> Took:
    """What a piece of work takes on this thread."""
    wall, cpu = time.perf_counter(), time.thread_time()
    work()
    cpu = time.thread_time() - cpu
    return Took((time.perf_counter() - wall) * 1000, cpu * 1000)


def _slow(ask: Ask) -> bool:
    """The first question loads what is loaded lazily, the second tells."""
    ask(0)
    return timed(partial(ask, 1)).wall > SLOW_MS
