"""Bodies read piece by piece: ranges, redirects and faults of downloads."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.policy import OPERATOR
from engine.testing.certificates import write_certificate
from engine.testing.fake_provider import Answer, Provider, Request, serving

LOOPBACK = ipaddress.ip_address("127.0.0.1")
BODY = bytes(range(256)) * 1000


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        running.respond = ranged
        yield running


@pytest.fixture
def client() -> Iterator[HttpClient]:
    made = HttpClient(limits=Limits(total_s=20.0, retries=0))
    yield made
    made.close()


def ranged(request: Request) -> Answer:
    """The whole body, or the rest of it from a range's start."""
    asked = request.headers.get("range")
    if asked is None:
        return Answer(200, BODY)
    start = int(asked.removeprefix("bytes=").rstrip("-"))
    return Answer(206, BODY[start:], {"Content-Range": f"bytes {start}-"})


def moved(location: str, status: int = 302) -> Answer:
    return Answer(status, headers={"Location": location})


def read(client: HttpClient, url: str, **options: int) -> bytes:
    with client.stream(url, max_redirects=options.get("max_redirects", 0)) as answer:
        return b"".join(answer.chunks)


def test_a_body_comes_in_pieces(client: HttpClient, provider: Provider) -> None:
    with client.stream(f"http://127.0.0.1:{provider.port}/file") as answer:
        pieces = list(answer.chunks)
    assert (answer.status, b"".join(pieces)) == (200, BODY)
    assert answer.headers["content-length"] == str(len(BODY))
    assert len(pieces) > 1


def test_a_range_goes_on_where_another_attempt_ended(
    client: HttpClient, provider: Provider
) -> None:
    sent = {"Range": f"bytes={len(BODY) - 10}-"}
    with client.stream(f"http://127.0.0.1:{provider.port}/file", headers=sent) as answer:
        assert (answer.status, b"".join(answer.chunks)) == (206, BODY[-10:])
        assert answer.headers["content-range"].startswith("bytes 255990-")


def test_an_answer_that_is_not_read_to_its_end_leaves_the_client_usable(
    client: HttpClient, provider: Provider
) -> None:
    url = f"http://127.0.0.1:{provider.port}/file"
    with client.stream(url) as answer:
        next(answer.chunks)
    assert read(client, url) == BODY


def test_a_refusal_says_how_long_to_wait(client: HttpClient, provider: Provider) -> None:
    provider.script = [Answer(429, headers={"Retry-After": "7"})]
    with pytest.raises(HttpFailed) as caught:
        read(client, f"http://127.0.0.1:{provider.port}/file")
    assert (caught.value.status, caught.value.retry_after) == (429, "7")
    assert caught.value.is_retried


def test_a_body_larger_than_expected_is_cut_off(client: HttpClient, provider: Provider) -> None:
    url = f"http://127.0.0.1:{provider.port}/file"
    with (
        pytest.raises(HttpFailed) as caught,
        client.stream(url, limits=Limits(max_bytes=1000)) as answer,
    ):
        b"".join(answer.chunks)
    assert (caught.value.code, caught.value.is_retried) == ("response_too_large", False)


def test_a_body_that_breaks_off_is_told(client: HttpClient, provider: Provider) -> None:
    provider.script = [Answer(200, BODY, breaks=True)]
    with pytest.raises(HttpFailed) as caught:
        read(client, f"http://127.0.0.1:{provider.port}/file")
    assert (caught.value.code, caught.value.is_retried) == ("connect_failed", True)


def test_a_redirect_is_refused_unless_asked_for(client: HttpClient, provider: Provider) -> None:
    provider.script = [moved("/other")]
    with pytest.raises(HttpFailed) as caught:
        read(client, f"http://127.0.0.1:{provider.port}/file")
    assert (caught.value.code, len(provider.requests)) == ("redirect_refused", 1)


def test_a_redirect_on_the_same_server_keeps_the_headers(
    client: HttpClient, provider: Provider
) -> None:
    provider.script = [moved("/other?signature=a%2Fb&x=1#part", 307)]
    sent = {"Range": "bytes=10-", "Authorization": "Bearer k"}
    url = f"http://127.0.0.1:{provider.port}/file"
    with client.stream(url, headers=sent, max_redirects=1) as answer:
        assert b"".join(answer.chunks) == BODY[10:]
    assert provider.requests[1].path == "/other?signature=a%2Fb&x=1"
    assert provider.requests[1].headers["authorization"] == "Bearer k"


def test_a_redirect_elsewhere_takes_the_range_but_no_key(
    client: HttpClient, provider: Provider
) -> None:
    with serving() as other:
        other.respond = ranged
        provider.script = [moved(f"http://localhost:{other.port}/cdn")]
        sent = {"Range": "bytes=10-", "authorization": "Bearer k"}
        url = f"http://127.0.0.1:{provider.port}/file"
        with client.stream(url, headers=sent, max_redirects=3) as answer:
            assert b"".join(answer.chunks) == BODY[10:]
        assert "authorization" not in other.requests[0].headers


def test_redirects_end(client: HttpClient, provider: Provider) -> None:
    provider.respond = lambda request: moved("/again")
    with pytest.raises(HttpFailed) as caught:
        read(client, f"http://127.0.0.1:{provider.port}/file", max_redirects=3)
    assert (caught.value.code, len(provider.requests)) == ("redirect_refused", 4)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://cdn.example/file", "https_required"),
        ("https://169.254.169.254/file", "blocked_address"),
        ("file:///etc/passwd", "scheme"),
        ("https://user:key@cdn.example/file", "credentials_in_url"),
    ],
)
def test_a_redirect_is_judged_like_any_url(
    client: HttpClient, provider: Provider, location: str, reason: str
) -> None:
    provider.script = [moved(location)]
    with pytest.raises(UrlBlocked) as caught:
        read(client, f"http://127.0.0.1:{provider.port}/file", max_redirects=3)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://127.0.0.1:{port}/inner", "private_address"),
        ("https://inner.test:{port}/inner", "name_resolves_to_loopback"),
    ],
)
def test_a_server_elsewhere_cannot_lead_to_this_machine(
    tmp_path: Path, location: str, reason: str
) -> None:
    pem = write_certificate(tmp_path / "certificate.pem", "mirror.test", "inner.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    trust = ssl.create_default_context(cafile=str(pem))
    with serving(server) as mirror:
        mirror.script = [moved(location.format(port=mirror.port))]
        client = HttpClient(OPERATOR, resolve=lambda host, port: [LOOPBACK], tls=trust)
        with pytest.raises(UrlBlocked) as caught:
            read(client, f"https://mirror.test:{mirror.port}/file", max_redirects=3)
        client.close()
    assert (caught.value.reason, len(mirror.requests)) == (reason, 1)
