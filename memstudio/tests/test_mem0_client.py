"""mem0's own client, unchanged, against a served studio: every method that it has."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest

from memstudio.tests.mcp_client import make_keys, serving

ANN: Final = {"user_id": "ann"}
LLM: Final = "needs a language model"


@dataclass(frozen=True, slots=True)
class World:
    """A studio, the secrets of its keys, and the client's package."""

    url: str
    secrets: dict[str, str]
    mem0: Any
    errors: Any


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        # It writes a file into this folder and calls home, unless told not to.
        patch.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("mem0")))
        patch.setenv("MEM0_TELEMETRY", "False")
        mem0 = importlib.import_module("mem0")
        errors = importlib.import_module("mem0.exceptions")
    with serving(tmp_path_factory.mktemp("studio")) as studio:
        both = ["read", "write"]
        secrets = make_keys(studio.home, alice=both, bob=both, reader=["read"])
        yield World(studio.url, secrets, mem0, errors)


class Talk:
    """Calls a client's methods by name; the asynchronous one's too. ``called`` remembers them."""

    def __init__(self, world: World, key: str, *, is_async: bool) -> None:
        self.errors = world.errors
        self.called: set[str] = set()
        self._runner = asyncio.Runner() if is_async else None
        kind = world.mem0.AsyncMemoryClient if is_async else world.mem0.MemoryClient
        self.client = self._made(lambda: kind(api_key=world.secrets[key], host=world.url))

    def _made(self, make: Callable[[], Any]) -> Any:
        if self._runner is None:
            return make()

        async def made() -> Any:
            return make()

        return self._runner.run(made())

    def __call__(self, name: str, /, *given: Any, **named: Any) -> Any:
        """What a method answers."""
        self.called.add(name)
        answer = getattr(self.client, name)(*given, **named)
        return self._waited(answer)

    def _waited(self, answer: Any) -> Any:
        if not inspect.isawaitable(answer) or self._runner is None:
            return answer

        async def wait() -> Any:
            return await answer

        return self._runner.run(wait())

    def project(self, name: str, /, *given: Any, **named: Any) -> Any:
        """What a method of its project answers."""
        self.called.add(f"project.{name}")
        return self._waited(getattr(self.client.project, name)(*given, **named))

    def refused(self, words: str, call: Callable[..., Any], *given: Any, **named: Any) -> None:
        """Check that a call is refused with these words."""
        with pytest.raises(self.errors.MemoryError, match=words):
            call(*given, **named)

    def close(self) -> None:
        """Give the connections back."""
        held = getattr(self.client, "async_client", None) or self.client.client
        self._waited(held.aclose() if self._runner else held.close())
        if self._runner is not None:
            self._runner.close()


@pytest.fixture(params=["sync", "async"])
def alice(request: pytest.FixtureRequest, world: World) -> Iterator[Talk]:
    talk = Talk(world, "alice", is_async=request.param == "async")
    yield talk
    talk("add", "the last one", user_id="ann")
    talk("reset")
    talk.close()


def test_a_memory_lives_from_its_first_word_to_the_trash(alice: Talk) -> None:
    added = alice("add", "Reads in 京都", user_id="ann", run_id="r1", metadata={"mood": "calm"})
    assert added["status"] == "SUCCEEDED"
    one = added["results"][0]["id"]
    assert alice("get", one)["metadata"] == {"mood": "calm"}
    found = alice("search", "京都", filters=ANN, top_k=5)["results"]
    assert [row["id"] for row in found] == [one]
    assert 0 < found[0]["score"] <= 1
    wanted = {"AND": [ANN, {"metadata": {"mood": {"icontains": "CALM"}}}]}
    page = alice("get_all", filters=wanted, page=1, page_size=10)
    assert (page["count"], page["results"][0]["run_id"]) == (1, "r1")
    changed = alice("update", one, text="Reads in Nara", expiration_date="2090-01-01")
    assert (changed["memory"], changed["expiration_date"]) == ("Reads in Nara", "2090-01-01")
    assert alice("update", one, expiration_date=None)["expiration_date"] is None
    events = [entry["event"] for entry in alice("history", one)]
    assert events[:2] == ["ADD", "UPDATE"]
    assert alice("feedback", one, "POSITIVE", "right")["feedback"] == "POSITIVE"
    alice("delete", one)
    with pytest.raises(alice.errors.MemoryNotFoundError, match="No such memory"):
        alice("get", one)


def test_messages_batches_and_entities(alice: Talk) -> None:
    turns = [{"role": "user", "content": "Cats."}, {"role": "assistant", "content": "Dogs."}]
    added = alice("add", turns, filters={**ANN, "agent_id": "bot"}, infer=False)
    ids = [row["id"] for row in added["results"]]
    assert len(ids) == 2
    alice("batch_update", [{"memory_id": one, "text": f"Birds {one}"} for one in ids])
    assert alice("get", ids[0])["memory"] == f"Birds {ids[0]}"
    alice("batch_delete", [{"memory_id": ids[0]}])
    users = alice("users")
    assert {(row["type"], row["name"]) for row in users["results"]} >= {
        ("user", "ann"),
        ("agent", "bot"),
    }
    alice("delete_users", agent_id="bot")
    alice("add", "One more", user_id="ann")
    alice("delete_all", filters=ANN)
    assert alice("get_all", filters=ANN)["count"] == 0
    alice("add", "One more", user_id="ann")
    alice("delete_all", user_id="ann")
    assert alice("get_all", filters=ANN)["count"] == 0


def test_what_it_cannot_do_is_told(alice: Talk) -> None:
    alice("add", "tea", user_id="ann")
    alice.refused(LLM, alice, "create_memory_export", schema=json.dumps({}), filters=ANN)
    alice.refused(LLM, alice, "get_memory_export", filters=ANN)
    alice.refused(LLM, alice, "get_summary", filters=ANN)
    assert alice("get_profile", "ann")["status"] == "not_enabled"
    assert alice("get_profile_settings")["enabled"] is False
    alice.refused("Profiles", alice, "generate_profile", "ann")
    alice.refused("Profiles", alice, "sample_profiles")
    alice.refused("Profiles", alice, "update_profile_settings", enabled=True)
    alice.refused("nothing at this address", alice, "get_profile_job", "x")
    name = alice("get_project", fields=["name"])["name"]
    assert name == alice.project("get")["name"] == "alice"
    alice.refused("API key", alice, "update_project", custom_instructions="Be brief.")
    assert alice.project("get_members")["members"]
    for method, given in (
        ("create", ("new",)),
        ("update", ("be brief",)),
        ("delete", ()),
        ("add_member", ("a@b.example", "READER")),
        ("update_member", ("a@b.example", "READER")),
        ("remove_member", ("a@b.example",)),
    ):
        alice.refused("API key", alice.project, method, *given)
    alice.refused("Webhooks", alice, "get_webhooks", "x")
    url = "http://hook.example"
    alice.refused("Webhooks", alice, "create_webhook", url, "n", "x", ["memory_add"])
    alice.refused("Webhooks", alice, "update_webhook", 1, name="n")
    alice.refused("Webhooks", alice, "delete_webhook", 1)
    with pytest.raises(NotImplementedError):
        alice("chat")
    alice.refused("filter is needed", alice, "get_all")
    alice.refused("user_id", alice, "add", "tea")
    alice.refused("user_id", alice, "delete_all")


def test_no_method_of_it_is_left_out() -> None:
    source = inspect.getsource(inspect.getmodule(test_no_method_of_it_is_left_out) or World)
    mem0 = importlib.import_module("mem0")
    project = importlib.import_module("mem0.client.project")
    kinds = (mem0.MemoryClient, mem0.AsyncMemoryClient, project.Project, project.AsyncProject)
    names = {
        name
        for kind in kinds
        for name, _method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }
    assert {"add", "search", "get_members"} <= names
    assert [name for name in sorted(names) if f'"{name}"' not in source] == []


def test_keys_do_not_see_each_other_and_keep_to_their_scopes(alice: Talk, world: World) -> None:
    one = alice("add", "keeps a parrot", user_id="ann")["results"][0]["id"]
    bob = Talk(world, "bob", is_async=False)
    assert bob("get_all", filters={"user_id": "*"})["count"] == 0
    assert bob("search", "parrot", filters=ANN)["results"] == []
    bob.refused("No such memory", bob, "get", one)
    bob("delete_all", user_id="ann")
    bob.close()
    reader = Talk(world, "reader", is_async=False)
    reader.refused("scope", reader, "add", "tea", user_id="ann")
    reader.close()
    assert alice("get", one)["memory"] == "keeps a parrot"


def test_a_wrong_key_is_told_when_the_client_is_made(world: World) -> None:
    with httpx.Client() as http, pytest.raises(ValueError, match="The API key is not valid"):
        world.mem0.MemoryClient(api_key="ms_wrong", host=world.url, client=http)
