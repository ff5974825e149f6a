"""LangGraph's own client, unchanged, against a served studio: every method of its store."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.errors import (
    AuthenticationError,
    PermissionDeniedError,
    UnprocessableEntityError,
)

from memstudio.tests.mcp_client import make_keys, serving


@dataclass(frozen=True, slots=True)
class World:
    """A studio and the secrets of its keys."""

    url: str
    secrets: dict[str, str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(tmp_path_factory.mktemp("studio")) as studio:
        both = ["read", "write"]
        yield World(studio.url, make_keys(studio.home, sync=both, later=both, reader=["read"]))


class Store:
    """Calls the store of a client by name; the asynchronous one's too."""

    def __init__(self, world: World, key: str, *, is_async: bool = False) -> None:
        self._runner = asyncio.Runner() if is_async else None
        self._client: Any
        if self._runner is None:
            self._client = get_sync_client(url=world.url, api_key=key)
        else:
            self._client = self._runner.run(self._made(world.url, key))

    async def _made(self, url: str, key: str) -> Any:
        return get_client(url=url, api_key=key)

    def __call__(self, name: str, /, *given: Any, **named: Any) -> Any:
        """What a method answers."""
        answer = getattr(self._client.store, name)(*given, **named)
        if self._runner is None:
            return answer

        async def wait() -> Any:
            return await answer

        return self._runner.run(wait())

    def close(self) -> None:
        """Give the connections back."""
        http = self._client.http.client
        if self._runner is None:
            http.close()
            return
        self._runner.run(http.aclose())
        self._runner.close()


@pytest.fixture(params=["sync", "later"])
def store(request: pytest.FixtureRequest, world: World) -> Iterator[Store]:
    made = Store(world, world.secrets[request.param], is_async=request.param == "later")
    yield made
    made.close()


def test_an_item_lives_from_its_first_word_to_the_trash(store: Store) -> None:
    ann, value = ("users", "ann"), {"text": "likes hiking in the Alps", "tags": ["a"], "n": 3}
    assert store("put_item", ann, key="p.1", value=value) is None
    item = store("get_item", ann, key="p.1")
    assert (item["namespace"], item["key"], item["value"]) == (list(ann), "p.1", value)
    store("put_item", ("users", "bo"), key="p", value={"n": 5}, index=False, ttl=10)
    assert store("get_item", ("users", "bo"), key="p", refresh_ttl=False)["value"] == {"n": 5}
    assert store("get_item", ann, key="nothing") is None
    found = store("search_items", ("users",), query="hiking in the mountains", limit=3)
    assert [row["key"] for row in found["items"]] == ["p.1"]
    assert found["items"][0]["score"] > 0
    found = store("search_items", ("users",), filter={"n": {"$gt": 3}}, refresh_ttl=True)
    assert [row["key"] for row in found["items"]] == ["p"]
    assert len(store("search_items", (), limit=1, offset=1)["items"]) == 1
    names = store("list_namespaces", prefix=["users"], max_depth=2)["namespaces"]
    assert names == [["users", "ann"], ["users", "bo"]]
    assert store("list_namespaces", suffix=["bo"])["namespaces"] == [["users", "bo"]]
    for namespace, key in ((ann, "p.1"), (ann, "p.1"), (("users", "bo"), "p")):
        assert store("delete_item", namespace, key=key) is None
    assert store("search_items", ())["items"] == []


def test_keys_do_not_see_each_other_and_keep_to_their_scopes(store: Store, world: World) -> None:
    store("put_item", ("a",), key="k", value={"text": "keeps a parrot"})
    reader = Store(world, world.secrets["reader"])
    assert reader("get_item", ("a",), key="k") is None
    assert reader("search_items", (), query="parrot")["items"] == []
    with pytest.raises(PermissionDeniedError, match="scope"):
        reader("put_item", ("a",), key="k", value={})
    reader.close()
    store("delete_item", ("a",), key="k")


def test_errors_are_those_that_it_knows(store: Store, world: World) -> None:
    with pytest.raises(UnprocessableEntityError, match="namespace_prefix"):
        store("search_items", ("a.b",))
    stranger = Store(world, "ms_wrong")
    with pytest.raises(AuthenticationError, match="The API key is not valid"):
        stranger("search_items", ())
    stranger.close()


def test_no_method_of_it_is_left_out() -> None:
    source = inspect.getsource(inspect.getmodule(test_no_method_of_it_is_left_out) or World)
    client = get_sync_client(url="http://127.0.0.1:1", api_key="x")
    names = {name for name, _ in inspect.getmembers(type(client.store), inspect.isfunction)}
    client.http.client.close()
    public = {name for name in names if not name.startswith("_")}
    assert "put_item" in public
    assert [name for name in sorted(public) if f'"{name}"' not in source] == []
