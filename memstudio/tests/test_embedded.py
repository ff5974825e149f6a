"""The worker and the ticker inside the web process."""

from __future__ import annotations

import threading

import pytest

from memstudio import embedded
from memstudio.celery import app

pytestmark = pytest.mark.embedded

DEADLINE_S = 10


def test_each_worker_takes_the_messages_of_its_queue() -> None:
    seen: dict[str, str] = {}
    done = {"short": threading.Event(), "long": threading.Event()}

    @app.task(name="test.note")  # type: ignore[untyped-decorator]
    def note(queue: str) -> None:
        seen[queue] = threading.current_thread().name
        done[queue].set()

    workers = [embedded.Worker(app, queue) for queue in done]
    for worker in workers:
        worker.start()
    try:
        for queue in done:
            note.apply_async(args=[queue], queue=queue)
        assert all(event.wait(DEADLINE_S) for event in done.values())
    finally:
        for worker in workers:
            worker.stop()
    assert seen == {"short": "worker-short", "long": "worker-long"}
    assert not [thread for thread in threading.enumerate() if thread.name in seen.values()]


def test_long_work_never_holds_up_short_work() -> None:
    release, finished = threading.Event(), threading.Event()

    @app.task(name="test.long")  # type: ignore[untyped-decorator]
    def long() -> None:
        release.wait(DEADLINE_S)

    @app.task(name="test.short")  # type: ignore[untyped-decorator]
    def short() -> None:
        finished.set()

    workers = [embedded.Worker(app, queue) for queue in ("short", "long")]
    for worker in workers:
        worker.start()
    try:
        long.apply_async(queue="long")
        short.apply_async(queue="short")
        assert finished.wait(DEADLINE_S)
    finally:
        release.set()
        for worker in workers:
            worker.stop()


def test_the_ticker_steps_at_once_and_stops_at_once() -> None:
    stepped = threading.Event()
    ticker = embedded.Ticker(first=stepped.set, step=lambda: None)
    ticker.start()
    assert stepped.wait(DEADLINE_S)
    ticker.stop()
    assert not ticker.is_running


def test_a_step_that_fails_is_logged_and_the_ticker_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    again = threading.Event()

    def fails() -> None:
        raise OSError("database is busy")

    ticker = embedded.Ticker(first=fails, step=again.set)
    ticker.start()
    assert again.wait(DEADLINE_S)
    ticker.stop()
    assert "the sweep of the jobs failed" in caplog.text
