"""What a web passes on to vaultd: whole, as it comes, and only while the client waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.test import override_settings

from memstudio.bridge import Message, Receive, Scope, Send
from memstudio.tests.test_studio import free_port
from memstudio.vaultd.door import Door
from memstudio.vaultd.forwarding import CODE, MESSAGE, Forwarding
from memstudio.vaultd.headers import CLIENT, PROOF, SCHEME, arrived, back, onward
from memstudio.vaultd.incoming import Incoming
from memstudio.vaultd.proof import is_proven, proof
from memstudio.vaultd.routing import named_by_call, named_in
from memstudio.vaultd.way import Way

BIG = b"0123456789abcdef" * 2**16
Answer = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def request(method: str = "GET", path: str = "/api/vaults", *headers: tuple[str, str]) -> Scope:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "https",
        "client": ("203.0.113.9", 50000),
        "headers": [(b"host", b"localhost"), *((n.encode(), v.encode()) for n, v in headers)],
    }


class Client:
    """Plays the server's part: gives body parts, collects what is sent, leaves when told."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts) or [b""]
        self.sent: list[Message] = []
        self.leaves = asyncio.Event()

    async def receive(self) -> Message:
        if self.parts:
            part = self.parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self.parts)}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


class Here:
    """What the web itself would answer; notes what it was given."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message["body"]
            more = message["more_body"]
        self.asked.append((scope["method"], scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})


async def with_server(answer: Answer, act: Callable[[int], Awaitable[None]]) -> None:
    """Do something beside a server that reads a head and leaves the rest to ``answer``."""
    errors: list[BaseException] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(await reader.readuntil(b"\r\n\r\n"), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        except BaseException as error:
            errors.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        await asyncio.wait_for(act(server.sockets[0].getsockname()[1]), 20)
    assert errors == []


async def passed(port: int, scope: Scope, client: Client, here: Here | None = None) -> None:
    """One request through a forwarder."""
    forwarding = Forwarding(f"http://127.0.0.1:{port}")
    try:
        await forwarding.pages(here or Here())(scope, client.receive, client.send)
    finally:
        await asyncio.to_thread(forwarding.stop)


def test_headers_of_one_connection_and_of_ours_stay_behind() -> None:
    given = request(
        "POST",
        "/vaults/",
        ("cookie", "a=1"),
        ("connection", "keep-alive, X-Mine"),
        ("x-mine", "1"),
        ("te", "trailers"),
        ("transfer-encoding", "chunked"),
        ("x-forwarded-proto", "https"),
        ("x-memory-studio-client", "127.0.0.1"),
        ("x-memory-studio-proof", "guess"),
    )
    sent = onward(given, has_body=True)
    assert sorted(sent) == sorted(
        [
            (b"host", b"localhost"),
            (b"cookie", b"a=1"),
            (b"x-forwarded-proto", b"https"),
            (PROOF, proof()),
            (CLIENT, b"203.0.113.9"),
            (SCHEME, b"https"),
            (b"transfer-encoding", b"chunked"),
        ]
    )
    there = arrived({**given, "headers": sent, "client": ("10.0.0.2", 1), "scheme": "http"})
    assert (there["client"], there["scheme"]) == (("203.0.113.9", 0), "https")
    assert [name for name, _value in there["headers"] if name.startswith(b"x-memory")] == []
    kept = back([(b"Set-Cookie", b"a"), (b"Server", b"x"), (b"Connection", b"close")])
    assert kept == [(b"set-cookie", b"a")]


@override_settings(ENCRYPTION_KEY="another installation's")
def test_the_proof_is_the_installation_s_and_tells_no_key() -> None:
    other = proof()
    with override_settings(ENCRYPTION_KEY="ours"):
        assert not is_proven(other)
        assert is_proven(proof())
        assert len(proof()) == 64
        assert not is_proven(b"")


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/vaults/", None),
        ("/vaults/add/", None),
        ("/vaults/import/", None),
        ("/api/vaults", None),
        ("/api/vaults/import", None),
        ("/api/vaults/my notes/search", "my notes"),
        ("/vaults/049693bf-b455-477e-911e-a4273322803f/lock/", "049693bf"),
    ],
)
def test_an_address_names_its_vault(path: str, named: str | None) -> None:
    found = named_in(path)
    assert found is None if named is None else (found or "").startswith(named)


def test_a_message_names_the_vaults_of_its_calls() -> None:
    call = '{"method": "tools/call", "params": {"name": "x", "arguments": %s}}'
    assert named_by_call((call % '{"vaultId": "a"}').encode()) == ["a"]
    assert named_by_call((call % '{"vault\\u0049d": "a", "vault_id": "b"}').encode()) == ["a", "b"]
    batch = ", ".join(call % each for each in ("{}", '{"vault_id": "b"}'))
    assert named_by_call(f"[{batch}]".encode()) == ["b"]
    for odd in (call % '{"vaultId": 1}', call % '["vaultId"]', "[" * 9000 + "vault", "1", "{vault"):
        assert named_by_call(odd.encode()) == []


def test_a_large_body_arrives_whole_and_an_answer_as_it_comes() -> None:
    client = Client(*(BIG[start : start + 2**16] for start in range(0, len(BIG), 2**16)))
    half = asyncio.Event()

    async def answer(
        head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        assert head.startswith(b"POST /api/vaults/a%2Fb/assets?x=%20 HTTP/1.1\r\n")
        assert await reader.readexactly(len(BIG)) == BIG
        writer.write(b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        await writer.drain()
        await half.wait()
        writer.write(b"4\r\nrest\r\n0\r\n\r\n")
        await writer.drain()

    class Watching(Client):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if message.get("body") == b"half":
                half.set()

    watching = Watching(*client.parts)
    scope = request("POST", "/api/vaults/import", ("content-length", str(len(BIG))))
    scope.update({"raw_path": b"/api/vaults/a%2Fb/assets", "query_string": b"x=%20"})
    asyncio.run(with_server(answer, lambda port: passed(port, scope, watching)))
    assert (watching.status, watching.body) == (201, b"halfrest")


@pytest.mark.parametrize("moment", ["waiting", "answering", "uploading"])
def test_a_client_that_leaves_ends_the_request_there(moment: str) -> None:
    ended = asyncio.Event()

    async def run() -> None:
        client = Client(b"begun", *([b"more"] if moment == "uploading" else []))

        async def answer(
            _head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            if moment == "answering":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
                await writer.drain()
            client.parts.clear()
            client.leaves.set()
            while await reader.read(1000):
                pass
            ended.set()

        async def act(port: int) -> None:
            scope = request("POST", "/api/vaults", ("content-length", "9"))
            if moment != "uploading":
                scope["headers"][-1] = (b"content-length", b"5")
            await passed(port, scope, client)
            await ended.wait()

        await with_server(answer, act)
        assert [message["type"] for message in client.sent[:1]] == (
            ["http.response.start"] if moment == "answering" else []
        )

    asyncio.run(run())


def test_what_cannot_be_sent_is_answered_here_with_all_of_its_body() -> None:
    client, here = Client(b"one", b"two"), Here()
    scope = request("POST", "/api/vaults", ("content-length", "6"))
    asyncio.run(passed(free_port(), scope, client, here))
    assert here.asked == [("POST", "/api/vaults", b"onetwo")]
    assert client.body == b"here"


async def _break(
    _head: bytes, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter
) -> None:
    return


async def _refuse(
    _head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(b"HTTP/1.1 403 x\r\nX-Memory-Studio-Refused: 1\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize("fault", [_break, _refuse], ids=["broken off", "of another studio"])
@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("POST", "/api/vaults", []),
        ("POST", "/vaults/add/", [("GET", "/vaults/unavailable/", b"")]),
        ("GET", "/vaults/", [("GET", "/vaults/", b"")]),
    ],
)
def test_a_request_that_broke_off_is_told_and_only_reading_is_done_again(
    fault: Answer, method: str, path: str, asked: list[Any]
) -> None:
    client, here = Client(), Here()
    asyncio.run(with_server(fault, lambda port: passed(port, request(method, path), client, here)))
    assert here.asked == asked
    if not asked:
        assert client.status == 503
        assert CODE in client.body.decode()
        assert MESSAGE in client.body.decode()


def test_an_answer_that_breaks_off_is_cut_for_the_client() -> None:
    async def answer(
        _head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        await writer.drain()

    client = Client()
    with pytest.raises(Exception, match="peer closed"):
        asyncio.run(with_server(answer, lambda port: passed(port, request(), client)))
    assert client.sent[-1] == {"type": "http.response.body", "body": b"half", "more_body": True}


@pytest.mark.parametrize("name", ["host", "content-length"])
def test_what_the_web_refuses_itself_is_not_passed_on(name: str) -> None:
    value = {"host": "evil.example", "content-length": "999999999999"}[name]
    scope = request("POST", "/api/vaults")
    scope["headers"] = [(b"host", b"localhost"), (name.encode(), value.encode())][-2:]
    if name == "host":
        scope["headers"] = scope["headers"][1:]
    here, client = Here(), Client()
    asyncio.run(passed(free_port(), scope, client, here))
    assert here.asked == [("POST", "/api/vaults", b"")]


def test_the_door_lets_in_what_is_proven_and_about_vaults() -> None:
    inside = Here()

    def ask(path: str, *headers: tuple[bytes, bytes]) -> int:
        scope = request("GET", path)
        scope["headers"] += headers
        client = Client()
        asyncio.run(Door(inside)(scope, client.receive, client.send))
        return client.status

    proven = (PROOF, proof())
    assert ask("/vaults/", proven) == ask("/api/vaults", proven) == ask("/mcp", proven) == 200
    assert ask("/vaults/") == ask("/mcp", (PROOF, b"0" * 64)) == 403
    assert ask("/", proven) == ask("/vaultsx", proven) == ask("/v1/models", proven) == 404
    assert ask("/healthz") == ask("/readyz") == ask("/metrics") == 200
    assert len(inside.asked) == 6


def test_a_body_that_was_looked_at_can_still_be_read() -> None:
    async def run() -> tuple[bytes | None, bytes, bytes | None]:
        client = Client(b"ab", b"cd")
        first = Incoming(client.receive)
        whole = await first.whole(10)
        again = b"".join([each async for each in first.body()])
        return whole, again, await Incoming(Client(b"abc", b"d").receive).whole(2)

    assert asyncio.run(run()) == (b"abcd", b"abcd", None)


def test_a_way_that_was_never_used_closes() -> None:
    asyncio.run(Way("https://vaultd.example:8001").close())
    assert is_proven(proof())
