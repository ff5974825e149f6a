"""Outbound HTTP on an event loop: policy, proxies, limits and faults as for threads."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import pytest

from engine.net.addresses import Address
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.policy import OPERATOR, PUBLIC_ONLY, UrlPolicy
from engine.net.proxies import DIRECT, Proxies, parse_proxy
from engine.net.streaming import Incoming, StreamingClient, StreamLimits
from engine.testing.certificates import write_certificate
from engine.testing.fake_provider import json_answer, serving
from engine.testing.fake_proxy import proxying
from engine.testing.fake_upstream import FakeUpstream, Reply, serving_models

T = TypeVar("T")
LOOPBACK = ipaddress.ip_address("127.0.0.1")
LIMITS = StreamLimits(connect_s=10, idle_s=20)
QUICK = StreamLimits(connect_s=0.05, idle_s=0.1)
PIECES = (b"one", b"two", b"three")


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with serving_models() as running:
        yield running


def used(work: Callable[[StreamingClient], Awaitable[T]], **options: Any) -> T:
    """What ``work`` makes of a client that lives as long as its loop."""

    async def run() -> T:
        client = StreamingClient(options.pop("policy", OPERATOR), **options)
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run())


async def body_of(answer: Incoming) -> bytes:
    try:
        return b"".join([chunk async for chunk in answer.chunks()])
    finally:
        await answer.close()


async def fetched(client: StreamingClient, url: str, limits: StreamLimits = LIMITS) -> bytes:
    return await body_of(await client.send("GET", url, b"", {}, limits))


def test_an_answer_comes_in_the_pieces_it_was_sent_in(upstream: FakeUpstream) -> None:
    upstream.script = [Reply(418, pieces=PIECES, headers={"X-Kind": "tea"})]

    async def work(client: StreamingClient) -> None:
        answer = await client.send("POST", f"{upstream.url}/x?q=1", b"sent", {"A": "b"}, LIMITS)
        assert (answer.status, answer.header(b"x-kind"), answer.header(b"none")) == (
            418,
            b"tea",
            b"",
        )
        assert [chunk async for chunk in answer.chunks()] == list(PIECES)
        await answer.close()

    used(work)
    (request,) = upstream.requests
    assert (request.path, request.body, request.headers["a"]) == ("/v1/x?q=1", b"sent", "b")
    assert request.headers["accept-encoding"] == "identity"


def test_a_connection_is_used_again(upstream: FakeUpstream) -> None:
    ports = set()

    async def work(client: StreamingClient) -> None:
        for _ in range(3):
            answer = await client.send("GET", f"{upstream.url}/models", b"", {}, LIMITS)
            stream: Any = answer._response.extensions["network_stream"]
            ports.add(stream.get_extra_info("client_addr"))
            await body_of(answer)

    used(work)
    assert len(ports) == 1


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(hangs_after=-1), "timeout"),
        (Reply(pieces=PIECES, hangs_after=1), "timeout"),
        (Reply(dies_after=-1), "connect_failed"),
        (Reply(pieces=PIECES, dies_after=1), "connect_failed"),
        (Reply(body=b"cut off", dies_after=0), "connect_failed"),
    ],
    ids=["no head", "no more", "drops", "dies", "short"],
)
def test_a_server_that_fails_is_told_apart(upstream: FakeUpstream, reply: Reply, code: str) -> None:
    upstream.script = [reply]
    with pytest.raises(HttpFailed) as raised:
        used(lambda client: fetched(client, f"{upstream.url}/x", QUICK))
    assert raised.value.code == code


def test_an_answer_that_is_too_large_is_cut(upstream: FakeUpstream) -> None:
    limits = StreamLimits(max_bytes=5)
    for read in (body_of, lambda answer: answer.read(4)):
        upstream.script = [Reply(pieces=PIECES)]

        async def work(client: StreamingClient, read: Any = read) -> Any:
            return await read(await client.send("GET", f"{upstream.url}/x", b"", {}, limits))

        with pytest.raises(HttpFailed) as raised:
            used(work)
        assert raised.value.code == "response_too_large"


def test_who_leaves_takes_the_connection_along(upstream: FakeUpstream) -> None:
    upstream.script = [Reply(pieces=PIECES, hangs_after=1)]

    async def work(client: StreamingClient) -> None:
        answer = await client.send("GET", f"{upstream.url}/x", b"", {}, LIMITS)
        reading = asyncio.ensure_future(body_of(answer))
        while not upstream.open_streams:
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    used(work)
    assert upstream.left.wait(10)


def _names(*addresses: str) -> Callable[[str, int], Sequence[Address]]:
    return lambda _host, _port: [ipaddress.ip_address(one) for one in addresses]


@pytest.mark.parametrize(
    ("url", "policy", "found", "reason"),
    [
        ("http://169.254.169.254/v1", OPERATOR, (), "blocked_address"),
        ("http://127.0.0.1/v1", PUBLIC_ONLY, (), "private_address"),
        ("http://models.example/v1", OPERATOR, ("169.254.169.254",), "blocked_address"),
        ("http://models.example/v1", OPERATOR, ("8.8.8.8", "169.254.169.254"), "blocked_address"),
        ("http://models.example/v1", PUBLIC_ONLY, ("10.0.0.1",), "private_address"),
        ("http://models.example/v1", OPERATOR, (), "dns_failed"),
    ],
)
def test_addresses_are_judged_as_for_threads(
    url: str, policy: UrlPolicy, found: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(UrlBlocked) as raised:
        used(lambda client: fetched(client, url), policy=policy, resolve=_names(*found))
    assert raised.value.reason == reason


def test_a_name_is_resolved_and_the_next_address_tried(upstream: FakeUpstream) -> None:
    upstream.script = [Reply(body=b"ok")]
    url = f"http://models.example:{upstream.port}/x"
    names = _names("127.0.0.2", "127.0.0.1")
    assert used(lambda client: fetched(client, url), resolve=names) == b"ok"
    assert upstream.requests[0].headers["host"] == f"models.example:{upstream.port}"


def test_a_resolver_that_hangs_is_left_behind() -> None:
    hanging = Event()

    def never(_host: str, _port: int) -> Sequence[Address]:
        hanging.wait(10)
        return []

    with pytest.raises(HttpFailed) as raised:
        used(lambda client: fetched(client, "http://models.example/", QUICK), resolve=never)
    hanging.set()
    assert raised.value.code == "timeout"


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
@pytest.mark.parametrize("credentials", ["", "user:pass@"])
def test_a_proxy_is_used_for_names_elsewhere(
    upstream: FakeUpstream, scheme: str, credentials: str
) -> None:
    upstream.script = [Reply(body=b"ok")]
    with proxying(upstream.port) as proxy:
        proxy.wants_password = bool(credentials)
        proxies = Proxies(parse_proxy(f"{scheme}://{credentials}127.0.0.1:{proxy.port}"))
        url = "http://models.example/x"
        options: dict[str, Any] = {"proxies": proxies, "resolve": _names("8.8.8.8")}
        assert used(lambda client: fetched(client, url), **options) == b"ok"
        assert len(proxy.asked) == 1


def test_a_tunnel_ends_in_a_verified_connection(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path / "models.pem", "models.example")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    trusted = ssl.create_default_context(cafile=str(certificate))
    with serving(server) as provider, proxying(provider.port) as proxy:
        provider.script = [json_answer({"ok": True})]
        proxies = Proxies(parse_proxy(f"http://127.0.0.1:{proxy.port}"))
        url = "https://models.example/x"
        found = used(lambda client: fetched(client, url), proxies=proxies, tls=trusted)
        assert found == b'{"ok": true}'
        with pytest.raises(HttpFailed) as raised:
            used(lambda client: fetched(client, url), proxies=proxies)
    assert raised.value.code == "tls_failed"


def test_a_proxy_that_refuses_is_told(upstream: FakeUpstream) -> None:
    with proxying(upstream.port) as proxy:
        proxy.status = 407
        proxies = Proxies(parse_proxy(f"http://127.0.0.1:{proxy.port}"))
        with pytest.raises(HttpFailed) as raised:
            used(lambda client: fetched(client, "https://models.example/"), proxies=proxies)
    assert raised.value.code == "proxy_refused"
    assert DIRECT.configured is None
