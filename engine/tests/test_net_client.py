"""The outbound client against a real server on loopback, with faults."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine.errors import Cancelled
from engine.net.addresses import Address
from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.policy import OPERATOR, STRICT
from engine.testing.certificates import write_certificate
from engine.testing.fake_provider import Answer, Provider, json_answer, serving

LOOPBACK = ipaddress.ip_address("127.0.0.1")
METADATA = ipaddress.ip_address("169.254.169.254")


class Waits:
    """Notes the waits instead of waiting."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Names:
    """A resolver with scripted answers; the last one repeats."""

    def __init__(self, *answers: Sequence[Address]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        running.respond = lambda request: json_answer({"ok": True})
        yield running


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def client(waits: Waits) -> Iterator[HttpClient]:
    made = HttpClient(wait=waits, limits=Limits(total_s=20.0))
    yield made
    made.close()


def url(provider: Provider, host: str = "127.0.0.1", scheme: str = "http") -> str:
    return f"{scheme}://{host}:{provider.port}/v1/x"


def failure(client: HttpClient, provider: Provider, limits: Limits | None = None) -> HttpFailed:
    with pytest.raises(HttpFailed) as caught:
        client.post_json(url(provider), {"a": 1}, limits=limits)
    assert "127.0.0.1" not in str(caught.value)
    return caught.value


def test_json_goes_there_and_back(client: HttpClient, provider: Provider) -> None:
    answer = client.post_json(url(provider), {"text": "字"}, headers={"X-Key": "k"})
    (request,) = provider.requests
    assert answer == {"ok": True}
    assert (request.method, request.path, request.json()) == ("POST", "/v1/x", {"text": "字"})
    assert request.headers["x-key"] == "k"
    assert request.headers["host"] == f"127.0.0.1:{provider.port}"
    assert client.get_json(url(provider)) == {"ok": True}
    assert provider.requests[1].method == "GET"


def test_retry_sequence_01_two_failures_then_success(
    client: HttpClient, provider: Provider, waits: Waits
) -> None:
    provider.script = [Answer(503), Answer(429, headers={"Retry-After": "7"})]
    assert client.post_json(url(provider), {}) == {"ok": True}
    assert len(provider.requests) == 3
    assert waits.seconds == [0.5, 7.0]


def test_retry_sequence_02_the_attempts_are_limited(
    client: HttpClient, provider: Provider, waits: Waits
) -> None:
    provider.script = [Answer(503)] * 9
    error = failure(client, provider)
    assert (error.code, error.status, len(provider.requests)) == ("upstream_error", 503, 3)
    assert waits.seconds == [0.5, 1.0]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(400), "upstream_error", id="retry_sequence-05"),
        pytest.param(Answer(401), "auth_failed", id="auth"),
        pytest.param(Answer(200, b"<html>"), "invalid_response", id="retry_sequence-10"),
        pytest.param(
            Answer(302, headers={"Location": "http://169.254.169.254/"}),
            "redirect_refused",
            id="302",
        ),
        pytest.param(
            Answer(200, b"x", {"Content-Encoding": "gzip"}), "invalid_response", id="compressed"
        ),
    ],
)
def test_what_a_repeat_would_not_mend_is_tried_once(
    client: HttpClient, provider: Provider, waits: Waits, answer: Answer, code: str
) -> None:
    provider.script = [answer]
    assert failure(client, provider).code == code
    assert (len(provider.requests), waits.seconds) == (1, [])


def test_retry_sequence_06_a_broken_connection_is_tried_again(
    client: HttpClient, provider: Provider
) -> None:
    provider.script = [Answer(drops=True)]
    assert client.post_json(url(provider), {}) == {"ok": True}
    assert len(provider.requests) == 2


def test_retry_sequence_11_a_cancelled_wait_ends_it(provider: Provider) -> None:
    def stop(seconds: float) -> None:
        raise Cancelled("locked")

    provider.script = [Answer(503)]
    with pytest.raises(Cancelled):
        HttpClient(wait=stop).post_json(url(provider), {})
    assert len(provider.requests) == 1


def test_retry_sequence_13_a_refused_key_after_a_failure_ends_it(
    client: HttpClient, provider: Provider
) -> None:
    provider.script = [Answer(503), Answer(401)]
    assert failure(client, provider).code == "auth_failed"
    assert len(provider.requests) == 2


def test_a_slow_answer_times_out(client: HttpClient, provider: Provider) -> None:
    provider.script = [Answer(200, b'{"ok": tru', hangs=True)]
    error = failure(client, provider, Limits(total_s=0.3, retries=0))
    assert (error.code, error.status) == ("timeout", None)


def test_a_server_that_is_not_there_is_said(client: HttpClient, waits: Waits) -> None:
    with serving() as gone:
        pass
    assert failure(client, gone).code == "connect_failed"
    assert len(waits.seconds) == 2


def test_a_large_answer_is_cut_off(client: HttpClient, provider: Provider) -> None:
    provider.script = [Answer(200, b"x" * 5000)]
    error = failure(client, provider, Limits(max_bytes=1000))
    assert error.code == "response_too_large"


def test_a_refused_url_is_never_called(provider: Provider) -> None:
    with pytest.raises(UrlBlocked) as caught:
        HttpClient(STRICT).post_json("http://10.0.0.5/x", {})
    assert caught.value.reason == "https_required"


def test_a_name_is_resolved_once_and_its_address_used(provider: Provider, waits: Waits) -> None:
    names = Names([LOOPBACK])
    client = HttpClient(OPERATOR, resolve=names, wait=waits)
    assert client.post_json(url(provider, "api.test"), {}) == {"ok": True}
    assert names.asked == ["api.test"]
    assert provider.requests[0].headers["host"] == f"api.test:{provider.port}"


def test_a_name_that_changes_its_answer_leads_nowhere_new(provider: Provider, waits: Waits) -> None:
    client = HttpClient(OPERATOR, resolve=Names([LOOPBACK], [METADATA]), wait=waits)
    client.post_json(url(provider, "api.test"), {})
    with pytest.raises(UrlBlocked) as caught:
        client.post_json(url(provider, "api.test"), {})
    assert caught.value.reason == "blocked_address"
    assert len(provider.requests) == 1


def test_one_bad_address_among_good_ones_is_enough(provider: Provider) -> None:
    client = HttpClient(OPERATOR, resolve=Names([LOOPBACK, METADATA]))
    with pytest.raises(UrlBlocked):
        client.post_json(url(provider, "api.test"), {})
    assert provider.requests == []


def test_a_second_address_is_tried_when_the_first_is_dead(provider: Provider) -> None:
    dead = ipaddress.ip_address("127.99.99.99")
    client = HttpClient(OPERATOR, resolve=Names([dead, LOOPBACK]))
    assert client.post_json(url(provider, "api.test"), {}) == {"ok": True}


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return write_certificate(tmp_path / "certificate.pem", "api.test")


def test_tls_verifies_the_name_while_the_address_is_pinned(certificate: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    trust = ssl.create_default_context(cafile=str(certificate))
    with serving(server) as provider:
        provider.respond = lambda request: json_answer({"ok": True})
        client = HttpClient(OPERATOR, resolve=Names([LOOPBACK]), tls=trust, wait=Waits())
        assert client.get_json(url(provider, "api.test", "https")) == {"ok": True}


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_wrong_certificate_is_refused_at_once(certificate: Path, is_trusted: bool) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    trust = ssl.create_default_context(cafile=str(certificate)) if is_trusted else None
    host = "other.test" if is_trusted else "api.test"
    waits = Waits()
    with serving(server) as provider:
        client = HttpClient(OPERATOR, resolve=Names([LOOPBACK]), tls=trust, wait=waits)
        with pytest.raises(HttpFailed) as caught:
            client.get_json(url(provider, host, "https"))
    assert (caught.value.code, provider.requests, waits.seconds) == ("tls_failed", [], [])
