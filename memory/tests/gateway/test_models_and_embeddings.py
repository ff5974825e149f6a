"""``/v1/models`` and ``/v1/embeddings``: what others have, and what the studio has itself."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from engine.providers.spec import ProviderSpec
from engine.testing.fake_upstream import serving_models
from memory.principal import SYSTEM
from memory.services import providers
from memory.tests.gateway.conftest import CHAT, World, user

pytestmark = pytest.mark.django_db(transaction=True)
OWN = {"memory-studio", "multilingual-e5-small", "local/multilingual-e5-small"}
EMBEDDINGS = "/v1/embeddings"


def ids(world: World, **headers: str) -> set[str]:
    """The ids of the list."""
    return {row["id"] for row in world.say("/v1/models", method="GET", **headers).json()["data"]}


def test_every_model_is_listed_under_a_name_that_leads_to_it(world: World) -> None:
    assert ids(world) == {"small", "large", *OWN}
    with serving_models() as other:
        providers.create(SYSTEM, ProviderSpec("other", base_url=other.url))
        found = ids(world)
        assert found == {"small", "large", "other/small", "other/large", *OWN}
        for name in found - OWN:
            assert world.say(CHAT, {**user("hi"), "model": name}).status == 200
        assert {row.json()["model"] for row in other.requests if row.body} == {"small", "large"}


def test_an_upstream_that_does_not_tell_is_left_out(world: World) -> None:
    providers.update(SYSTEM, "lab", {"base_url": "http://127.0.0.1:9/v1"})
    assert ids(world) == OWN


def test_one_model_can_be_asked_for(world: World) -> None:
    found = world.say("/v1/models/small", method="GET").json()
    assert found == {"id": "small", "object": "model", "created": 1, "owned_by": "lab"}
    named = world.say("/v1/models/lab/small", method="GET").json()
    assert named == {**found, "id": "lab/small"}
    for name in ("none", "lab/none", "nobody/small"):
        assert world.say(f"/v1/models/{name}", method="GET").status == 404


def test_anthropics_clients_get_their_own_shape(world: World) -> None:
    spec = ProviderSpec("claude", "anthropic", base_url=world.upstream.url, api_key="ant")
    providers.create(SYSTEM, spec)
    found = world.say("/v1/models", method="GET", anthropic_version="2023-06-01").json()
    assert (found["first_id"], found["last_id"], found["has_more"]) == (
        "claude/small",
        "claude/large",
        False,
    )
    assert {row["type"] for row in found["data"]} == {"model"}


def test_the_studio_embeds_itself(world: World) -> None:
    body = {"model": "memory-studio", "input": ["tea", "咖啡"]}
    found = world.say(EMBEDDINGS, body).json()
    assert [row["index"] for row in found["data"]] == [0, 1]
    packed = world.say(EMBEDDINGS, {**body, "encoding_format": "base64"}).json()
    for row, other in zip(found["data"], packed["data"], strict=True):
        vector = np.frombuffer(base64.b64decode(other["embedding"]), dtype="<f4")
        assert np.allclose(vector, row["embedding"])
    single = world.say(EMBEDDINGS, {"model": "multilingual-e5-small", "input": "tea"}).json()
    assert single["data"] == found["data"][:1]
    assert found["usage"]["total_tokens"] > 0
    assert world.upstream.requests == []


@pytest.mark.parametrize(
    "change",
    [{"input": []}, {"input": ""}, {"input": [1, 2]}, {"encoding_format": "x"}, {"dimensions": 7}],
)
def test_what_the_studio_cannot_embed_is_refused(world: World, change: dict[str, Any]) -> None:
    answered = world.say(EMBEDDINGS, {"model": "memory-studio", "input": "x", **change})
    assert (answered.status, answered.error["code"]) == (422, "invalid")


def test_other_embedding_models_are_asked_of_who_has_them(world: World) -> None:
    answered = world.say(EMBEDDINGS, {"model": "lab/text-embedding", "input": ["a"]})
    assert answered.json()["data"][0]["embedding"] == [3.0, 1.0, 0.0]
    assert world.upstream.last["model"] == "text-embedding"
