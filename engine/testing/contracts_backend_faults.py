"""What every backend behind HTTP keeps when the service does not. Subclass, and give ``served``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from engine.backends.rest import MAX_ANSWER
from engine.errors import BackendFailed
from engine.protocols import MemoryBackend
from engine.records import Draft, Filter, Search
from engine.testing.fake_provider import Answer, Provider

SECRET = "secret-key-1234"
FAULTS = {
    "no_key": Answer(401, b'{"error": "secret-key-1234"}'),
    "forbidden": Answer(403),
    "rate_limited": Answer(429, b"", {"Retry-After": "1"}),
    "server_error": Answer(500, b"item 404404"),
    "unavailable": Answer(503),
    "drops": Answer(drops=True),
    "breaks": Answer(200, b'{"a": 1}', breaks=True),
    "malformed": Answer(200, b"<html>"),
    "not_json": Answer(200, b'{"a": NaN}'),
    "wrong_shape": Answer(200, b'"text"'),
    "compressed": Answer(200, b"x", {"Content-Encoding": "gzip"}),
    "oversize": Answer(200, b" " * (MAX_ANSWER + 1)),
    "redirect": Answer(302, b"", {"Location": "http://169.254.169.254/"}),
}
CODES = {
    "no_key": "no_key",
    "forbidden": "no_key",
    "rate_limited": "rate_limited",
    "drops": "unreachable",
    "breaks": "unreachable",
    "malformed": "invalid_response",
    "not_json": "invalid_response",
    "wrong_shape": "invalid_response",
    "compressed": "invalid_response",
    "oversize": "too_large",
}


@dataclass(frozen=True, slots=True)
class Served:
    """A backend, the double it speaks to, and a way to make one that is patient for so long.

    ``waits`` keeps the seconds it waited between attempts.
    """

    backend: MemoryBackend
    provider: Provider
    hasty: Callable[[], MemoryBackend]
    waits: list[float]


class BackendFaultsContract:
    """Tests of a backend whose service misbehaves."""

    @pytest.fixture
    def served(self) -> Served:
        """The backend under test; subclasses override it."""
        pytest.fail("the subclass gives the backend and its double")

    @pytest.mark.parametrize("fault", FAULTS)
    def test_every_fault_is_told_by_its_code(self, served: Served, fault: str) -> None:
        served.provider.script = [FAULTS[fault]] * 12
        for call in _calls(served.backend):
            with pytest.raises(BackendFailed) as failed:
                call()
            assert failed.value.code == CODES.get(fault, "request_failed")
            assert SECRET not in str(failed.value)

    @pytest.mark.parametrize("fault", FAULTS)
    def test_health_tells_the_fault_and_never_raises(self, served: Served, fault: str) -> None:
        served.provider.script = [FAULTS[fault]] * 3
        health = served.backend.health()
        assert health.available is False
        assert health.reason
        assert SECRET not in health.reason

    def test_a_slow_service_costs_its_time_and_no_more(self, served: Served) -> None:
        served.provider.script = [Answer(200, b"{", hangs=True)] * 3
        started = time.monotonic()
        with pytest.raises(BackendFailed) as failed:
            served.hasty().create(Draft("a", "b"))
        assert failed.value.code == "timeout"
        assert time.monotonic() - started < 5

    def test_asked_too_often_it_waits_as_long_as_it_is_told(self, served: Served) -> None:
        # A refusal was not carried out, so that even a creation may be sent again.
        served.provider.script = [Answer(429, b"", {"Retry-After": "2"})]
        assert served.backend.create(Draft("a", "b", owner="alice")).content == "b"
        assert served.waits[0] == 2.0

    def test_a_creation_is_not_sent_twice(self, served: Served) -> None:
        served.provider.script = [Answer(500)] * 5
        with pytest.raises(BackendFailed):
            served.backend.create(Draft("a", "b"))
        assert sum(request.method != "GET" for request in served.provider.requests) <= 1

    def test_a_service_that_is_down_fails_at_once_after_a_while(self, served: Served) -> None:
        served.provider.script = [Answer(drops=True)] * 12
        for _attempt in range(3):
            with pytest.raises(BackendFailed):
                served.backend.create(Draft("a", "b"))
        before = len(served.provider.requests)
        with pytest.raises(BackendFailed):
            served.backend.create(Draft("a", "b"))
        assert len(served.provider.requests) == before

    def test_health_finds_out_that_it_is_up_again(self, served: Served) -> None:
        for _attempt in range(3):
            served.provider.script = [Answer(drops=True)] * 2
            with pytest.raises(BackendFailed):
                served.backend.create(Draft("a", "b"))
        served.provider.script.clear()
        assert served.backend.health().available is True
        assert served.backend.create(Draft("a", "b")).content == "b"


def _calls(backend: MemoryBackend) -> list[Callable[[], object]]:
    """Calls whose first request brings what they need."""
    return [
        lambda: backend.list_records(Filter()),
        lambda: backend.search(Search("tea")),
    ]
