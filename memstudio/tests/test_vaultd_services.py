"""The services of vaults, chosen at one web, hold in vaultd and in every other web at once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import pytest

from engine.testing.fake_provider import Answer, Provider, Request, embeddings, serving
from memory.tests.vaults import sent
from memstudio.tests import keeping_stack
from memstudio.tests.keeping_stack import PASSPHRASE, Stack

CARD = {"title": "Refund policy", "body": "Refunds are paid within seven days.", "kind": "card"}
SEARCH = {"query": "refunds", "mode": "vector"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with keeping_stack.running(tmp_path_factory.mktemp("keeping")) as running:
        yield running


class Chooser:
    """Somebody who may choose, at the first web."""

    def __init__(self, stack: Stack) -> None:
        scopes = ("--scope", "read", "--scope", "manage")
        done = stack.command("keys", "create", "manager", *scopes, "--json")
        assert done.returncode == 0, done.stderr
        self._url = f"{stack.webs[0].url}/api"
        self._headers = {"Authorization": f"Bearer {json.loads(done.stdout)['secret']}"}

    def add(self, name: str, server: Provider) -> None:
        """A provider."""
        address = f"http://127.0.0.1:{server.port}/v1"
        self._send("POST", "providers", {"name": name, "kind": "compatible", "baseUrl": address})

    def choose(self, name: str) -> None:
        """What embeds for vaults from now on."""
        self._send("PUT", "settings/vaults", {"embeddingProviderModel": f"{name}/m"})

    def _send(self, method: str, path: str, body: dict[str, str]) -> None:
        url = f"{self._url}/{path}"
        done = httpx2.request(method, url, json=body, headers=self._headers, timeout=60)
        assert done.status_code == 200, done.text


@pytest.fixture(scope="module")
def manager(stack: Stack) -> Chooser:
    return Chooser(stack)


def make(stack: Stack, name: str, *, is_sealed: bool) -> str:
    """A vault with one card; its id."""
    asked = {"name": name, "sealed": is_sealed, "passphrase": PASSPHRASE if is_sealed else ""}
    uid = str(stack.api(0, "", asked).json()["id"])
    assert stack.api(0, f"/{uid}/assets", CARD).status_code == 200
    return uid


def test_a_choice_at_one_web_holds_everywhere_without_a_restart(
    stack: Stack, manager: Chooser
) -> None:
    with serving() as first, serving() as second:
        manager.add("first", first)
        manager.add("second", second)
        manager.choose("first")
        vaults = [make(stack, "notes", is_sealed=True), make(stack, "library", is_sealed=False)]
        for name, server, other in (("first", first, second), ("second", second, first)):
            manager.choose(name)
            other.requests.clear()
            for web in (0, 1):
                for uid in vaults:
                    found = stack.api(web, f"/{uid}/search", SEARCH)
                    assert found.status_code == 200, found.text
                    told = stack.api(web, f"/{uid}").json()["embedding"]
                    assert (told["host"], told["origin"]) == (f"127.0.0.1:{server.port}", "studio")
            assert CARD["body"] in sent(server)
            assert other.requests == []
        _check_void(stack, manager, vaults[0], first)


def _check_void(stack: Stack, manager: Chooser, uid: str, first: Provider) -> None:
    """What vaultd works on when another web's choice comes gives no result."""
    manager.choose("first")

    def respond(request: Request) -> Answer:
        manager.choose("second")
        return embeddings(request)

    first.respond = respond
    late = stack.api(1, f"/{uid}/search", SEARCH)
    assert (late.status_code, late.json()["error"]["code"]) == (409, "source_changed")
