"""The official clients of OpenAI and Anthropic, unchanged, against a served studio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from engine.testing.fake_upstream import FakeUpstream, Reply, serving_models
from engine.testing.small_model import serving_model
from engine.testing.upstream_speech import TEXT
from memstudio.tests.mcp_client import make_keys, serving
from memstudio.tests.test_studio import Studio

DARK = "I prefer dark mode"
ASKED: Any = [{"role": "user", "content": "Which mode do I prefer, dark or light?"}]
STREAMS = 500


@dataclass(frozen=True, slots=True)
class World:
    """A studio with memory on, the double behind it, and a key that knows one thing."""

    studio: Studio
    upstream: FakeUpstream
    secret: str

    @property
    def openai(self) -> openai.OpenAI:
        """OpenAI's client."""
        return openai.OpenAI(base_url=f"{self.studio.url}/v1", api_key=self.secret, max_retries=0)

    @property
    def anthropic(self) -> anthropic.Anthropic:
        """Anthropic's client."""
        return anthropic.Anthropic(base_url=self.studio.url, api_key=self.secret, max_retries=0)


def configure(home: Path, **providers: str) -> None:
    """Name providers of a home by their base URLs."""
    lines = [
        f'[[providers]]\nname = "{name}"\nbase_url = "{url}"\n' for name, url in providers.items()
    ]
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text("\n".join(lines))


def switched_on(studio: Studio, **texts: str) -> str:
    """A key whose memory is on; its secret. ``texts`` are its memories, by their keys."""
    secrets = make_keys(studio.home, app=["read", "write", "chat"], chief=["manage"])
    with httpx2.Client(base_url=studio.url, timeout=60) as http:

        def send(method: str, path: str, body: Any, name: str) -> None:
            key = {"Authorization": f"Bearer {secrets[name]}"}
            http.request(method, path, json=body, headers=key).raise_for_status()

        send("PUT", "/api/settings/memory", {"enabled": True}, "chief")
        # A test machine is busy; the budget is tested elsewhere.
        send("PUT", "/api/settings/gateway", {"injectionBudgetMs": 5000}, "chief")
        for key, content in texts.items():
            body = {"key": key, "content": content, "sessionId": "monday"}
            send("POST", "/api/memory", body, "app")
    return secrets["app"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("gateway")
    with serving_models() as upstream:
        configure(home, lab=upstream.url)
        with serving(home) as studio:
            yield World(studio, upstream, switched_on(studio, theme=DARK))


def sent(world: World) -> str:
    """The last request upstream, as text."""
    return world.upstream.requests[-1].body.decode()


@pytest.mark.parametrize("stream", [False, True])
def test_openai_chats_and_a_memory_of_another_session_arrives(world: World, stream: bool) -> None:
    with world.openai as client:
        raw = client.chat.completions.with_raw_response.create(
            model="small",
            messages=ASKED,
            stream=stream,
            extra_headers={"x-session-id": "tuesday"},
        )
        done: Any = raw.parse()
        if stream:
            said = "".join(part.choices[0].delta.content or "" for part in done)
        else:
            said = done.choices[0].message.content
    assert said == TEXT
    assert DARK in sent(world)
    assert (raw.headers["x-memory-injected"], int(raw.headers["x-memory-tokens"]) > 0) == (
        "1",
        True,
    )


@pytest.mark.parametrize("stream", [False, True])
def test_openai_responds(world: World, stream: bool) -> None:
    with world.openai as client:
        done: Any = client.responses.create(model="small", input=ASKED[0]["content"], stream=stream)
        if stream:
            said = "".join(event.delta for event in done if event.type.endswith("text.delta"))
        else:
            said = done.output_text
    assert said == TEXT
    assert DARK in world.upstream.last["instructions"]


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_chats(world: World, stream: bool) -> None:
    wanted: Any = {"model": "lab/small", "max_tokens": 9, "messages": ASKED, "system": "Be kind."}
    with world.anthropic as client:
        if stream:
            with client.messages.stream(**wanted) as events:
                said = "".join(events.text_stream)
        else:
            said = client.messages.create(**wanted).content[0].text
    assert said == TEXT
    assert world.upstream.last["system"].startswith("Be kind.\n\n")
    assert DARK in world.upstream.last["system"]


def test_openai_lists_models_and_embeds(world: World) -> None:
    with world.openai as client:
        names = {model.id for model in client.models.list()}
        assert {"small", "large", "memory-studio"} <= names
        assert client.models.retrieve("small").owned_by == "lab"
        found = client.embeddings.create(model="memory-studio", input=["tea", "咖啡"])
        assert [len(row.embedding) for row in found.data] == [384, 384]
        assert client.embeddings.create(model="other", input="x").data[0].embedding[0] == 3.0


def test_refusals_raise_what_each_client_always_raises(world: World) -> None:
    stranger = world.openai.with_options(api_key="ms_wrong")
    with stranger as client, pytest.raises(openai.AuthenticationError):
        client.models.list()
    nobody = world.anthropic.with_options(api_key="ms_wrong")
    with nobody as other, pytest.raises(anthropic.AuthenticationError):
        other.messages.create(model="lab/small", max_tokens=9, messages=ASKED)
    world.upstream.script = [Reply(429, b'{"error": {"message": "slow down"}}')]
    with world.openai as client, pytest.raises(openai.RateLimitError, match="slow down"):
        client.chat.completions.create(model="small", messages=ASKED)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_stream_that_dies_raises_in_the_client(world: World, name: str) -> None:
    started = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    headers = {"Content-Type": "text/event-stream"}
    world.upstream.script = [Reply(pieces=[started] * 3, headers=headers, dies_after=2)]
    if name == "openai":
        with world.openai as client, pytest.raises(openai.APIError, match="broke"):
            list(client.chat.completions.create(model="small", messages=ASKED, stream=True))
        return
    with world.anthropic as other, pytest.raises(anthropic.APIError, match="broke"):
        list(other.messages.create(model="lab/a", max_tokens=9, messages=ASKED, stream=True))


def test_five_hundred_streams_at_once_complete(world: World) -> None:
    events = [b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'] * 3
    headers = {"Content-Type": "text/event-stream"}
    reply = Reply(pieces=[*events, b"data: [DONE]\n\n"], headers=headers, hangs_after=2)
    before, world.upstream.respond = world.upstream.respond, lambda _request: reply

    async def one(client: openai.AsyncOpenAI) -> str:
        done = await client.chat.completions.create(model="small", messages=ASKED, stream=True)
        return "".join([part.choices[0].delta.content or "" async for part in done])

    async def all_at_once() -> list[str]:
        async with openai.AsyncOpenAI(
            base_url=f"{world.studio.url}/v1", api_key=world.secret, max_retries=0, timeout=100
        ) as client:
            going = [asyncio.ensure_future(one(client)) for _ in range(STREAMS)]
            while world.upstream.open_streams < STREAMS and not any(map(_failed, going)):
                await asyncio.sleep(0.01)
            world.upstream.release()
            return await asyncio.gather(*going)

    try:
        assert asyncio.run(all_at_once()) == ["xxx"] * STREAMS
    finally:
        world.upstream.respond = before


def _failed(task: asyncio.Task[str]) -> bool:
    return task.done() and task.exception() is not None


def test_what_is_said_in_one_session_is_known_in_another(tmp_path: Path) -> None:
    with serving_models() as upstream:
        configure(tmp_path, lab=upstream.url)
        with serving(tmp_path) as studio:
            world = World(studio, upstream, switched_on(studio))
            with world.openai as client:
                said = client.chat.completions.with_raw_response.create(
                    model="small",
                    messages=[{"role": "user", "content": f"{DARK}."}],
                    extra_headers={"x-session-id": "monday"},
                )
                ids = _learnt(world, said.headers["x-memory-trace-id"])
                asked = client.chat.completions.with_raw_response.create(
                    model="small", messages=ASKED, extra_headers={"x-session-id": "tuesday"}
                )
    assert DARK in sent(world)
    assert (said.headers["x-memory-injected"], asked.headers["x-memory-injected"]) == ("0", "1")
    assert len(ids) == 1


def _learnt(world: World, trace_id: str) -> list[str]:
    """What a chat taught, once its job has run."""
    key = {"Authorization": f"Bearer {world.secret}"}
    with httpx2.Client(base_url=world.studio.url, headers=key, timeout=60) as http:
        for _ in range(600):
            found = http.get(f"/api/traces/{trace_id}")
            if found.status_code == 200 and found.json()["learnt"]:
                return list(found.json()["learnt"])
            Event().wait(0.05)
    raise AssertionError("nothing was learnt")


def test_a_real_small_model_is_given_the_memory(tmp_path: Path) -> None:
    with serving_model() as url:
        configure(tmp_path, smol=url)
        with serving(tmp_path) as studio:
            secret = switched_on(studio, port="The staging database uses port 5433.")
            question: Any = [
                {"role": "user", "content": "Which port does the staging database use?"}
            ]
            with openai.OpenAI(base_url=f"{studio.url}/v1", api_key=secret) as client:

                def ask(**headers: str) -> Any:
                    return client.chat.completions.create(
                        model="smol/smollm2",
                        messages=question,
                        max_tokens=30,
                        temperature=0,
                        extra_headers={name.replace("_", "-"): x for name, x in headers.items()},
                    )

                told, alone = ask(x_session_id="tuesday"), ask(x_memory_opt_out="true")
    assert "5433" in told.choices[0].message.content
    assert "5433" not in alone.choices[0].message.content
    assert told.usage.prompt_tokens > alone.usage.prompt_tokens + 50
