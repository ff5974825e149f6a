"""With a real Redis: the shared cache and the broker, and what it costs when they are gone."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from celery import Celery
from django.core.cache.backends.redis import RedisCache

from engine.testing import redis_server
from engine.testing.redis_server import RedisServer
from memory.dispatch import Sender
from memory.pause import PAUSE_S, Pause
from memory.shared_vectors import SharedVectors
from memstudio import redis

AT_MOST_S = 1.5
"""Twice what one answer may take, on a machine that is busy with other tests."""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with redis_server.running() as running:
        yield running


@contextmanager
def silence(port: int) -> Iterator[None]:
    """Something that takes connections on this port and never says a word."""
    with socket.socket() as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mute.bind(("127.0.0.1", port))
        mute.listen(50)
        yield


def vectors(server: RedisServer, clock: Clock | None = None) -> SharedVectors:
    """The shared vectors as one process would have them."""
    known = redis.cache(server.url)
    params = {"OPTIONS": known["OPTIONS"], "KEY_PREFIX": known["KEY_PREFIX"]}
    pause = Pause("the shared cache", clock or Clock())
    return SharedVectors(60.0, shared=RedisCache(server.url, params), pause=pause)


def celery(server: RedisServer) -> Celery:
    """An application with the broker of the test and the settings of ours."""
    made = Celery("test", set_as_current=False)
    made.conf.update(broker_url=server.url, task_default_queue="interactive")
    return made


def waiting(server: RedisServer) -> int:
    """Messages in the queue of short jobs."""
    with celery(server).connection_for_read() as broker:
        size: int = broker.SimpleQueue("interactive").qsize()
        return size


def timed(step: Any) -> tuple[Any, float]:
    """What a step answers, and how long it took in seconds."""
    began = time.perf_counter()
    return step(), time.perf_counter() - began


def test_processes_share_vectors(server: RedisServer) -> None:
    vectors(server).put({"a model:1:tea": b"\x00\x01", "b": b"\xff"})
    assert vectors(server).get(["a model:1:tea", "b", "c"]) == {
        "a model:1:tea": b"\x00\x01",
        "b": b"\xff",
    }


def test_a_cache_that_is_gone_costs_a_moment_once(server: RedisServer) -> None:
    clock = Clock()
    shared = vectors(server, clock)
    shared.put({"tea": b"1"})
    server.stop()
    with silence(server.port):
        found, took = timed(lambda: shared.get(["tea"]))
        assert (found, took < AT_MOST_S) == ({}, True)
        found, took = timed(lambda: [shared.get(["tea"]) for _ in range(1000)][-1])
        assert (found, took < 0.1) == ({}, True), "it is not asked meanwhile"
    server.start()
    clock.now += PAUSE_S
    shared.put({"tea": b"2"})
    assert shared.get(["tea"]) == {"tea": b"2"}


def test_what_someone_else_wrote_there_is_no_vector(server: RedisServer) -> None:
    shared = vectors(server)
    shared.put({"tea": b"1"})
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"KEYS *\r\n")
        name = client.recv(1000).decode().split("\r\n")[2]
        client.sendall(f"SET {name} cos_system\r\n".encode())
        assert client.recv(100) == b"+OK\r\n"
    assert shared.get(["tea"]) == {}


def test_a_message_is_sent(server: RedisServer) -> None:
    sender = Sender(celery(server))
    assert sender.send("memory.run_job", ["1"], queue="interactive")
    assert waiting(server) == 1
    sender.close()


def test_a_broker_that_was_started_again_gets_the_next_message(server: RedisServer) -> None:
    sender = Sender(celery(server))
    assert sender.send("memory.run_job", ["1"], queue="interactive")
    server.kill()
    server.start()
    assert sender.send("memory.run_job", ["2"], queue="interactive")
    assert waiting(server) == 1


@pytest.mark.parametrize("is_mute", [False, True], ids=["refuses", "says nothing"])
def test_a_broker_that_is_down_holds_nobody_up(server: RedisServer, is_mute: bool) -> None:
    clock = Clock()
    sender = Sender(celery(server), clock)
    server.stop()
    with silence(server.port) if is_mute else socket.socket():
        sent, took = timed(lambda: sender.send("memory.run_job", ["1"], queue="interactive"))
        assert (sent, took < AT_MOST_S) == (False, True)
        sent, took = timed(lambda: sender.send("memory.run_job", ["1"], queue="interactive"))
        assert (sent, took < 0.1) == (False, True)
    server.start()
    clock.now += PAUSE_S
    assert sender.send("memory.run_job", ["1"], queue="interactive")
