"""From a configuration to a backend that serves (first seed, createGenericMemoryBackend)."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from engine.backends.build import build
from engine.backends.config import ConfigInvalid, read
from engine.backends.folder import FolderBackend
from engine.backends.http import HttpBackend
from engine.backends.notion import NotionBackend
from engine.backends.obsidian import ObsidianBackend
from engine.net.client import HttpClient
from engine.net.policy import UrlPolicy
from engine.protocols import MemoryBackend
from engine.records import Draft, Search
from engine.testing.fake_provider import json_answer, serving


def _client(policy: UrlPolicy, tls: ssl.SSLContext | None) -> HttpClient:
    return HttpClient(policy, tls=tls) if tls else HttpClient(policy)


def _built(name: str, values: dict[str, object], roots: tuple[Path, ...] = ()) -> MemoryBackend:
    return build(read(name, values), make_client=_client, roots=roots, owner="alice")


def test_26_the_factory_makes_the_brain_of_the_documents() -> None:
    paths = {"search": "/api/memory/search", "create": "/api/memory", "health": "/api/health"}
    with serving() as provider:
        values: dict[str, object] = {
            "displayName": "BK-Brain",
            "baseUrl": f"http://127.0.0.1:{provider.port}",
            "allowLoopback": True,
            "apiKey": "brain-key-1234",
            "endpoints": paths,
        }
        brain = _built("brain", values)
        assert (type(brain), brain.id, brain.display_name) == (HttpBackend, "brain", "BK-Brain")
        memory = {"id": "m1", "key": "tea", "content": "likes tea"}
        provider.script = [json_answer(memory), json_answer({"data": [memory]})]
        assert brain.create(Draft("tea", "likes tea", owner="alice")).id == "m1"
        assert [found.id for found in brain.search(Search("tea"))] == ["m1"]
        asked = [urlsplit(request.path).path for request in provider.requests]
        keys = {request.headers["authorization"] for request in provider.requests}
        assert asked == ["/api/memory", "/api/memory/search"]
        assert keys == {"Bearer brain-key-1234"}
        brain.shutdown()


def test_known_names_make_their_own_backends(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    folder = _built("notes", {"adapter": "obsidian-folder", "path": "notes"}, (tmp_path,))
    notion = _built("notion", {"databaseId": "0" * 32, "apiKey": "secret-of-notion"})
    made = [type(backend) for backend in (_built("obsidian", {}), notion, folder)]
    assert made == [ObsidianBackend, NotionBackend, FolderBackend]


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({}, "baseUrl"),
        ({"baseUrl": "ftp://x"}, "baseUrl"),
        ({"baseUrl": "https://x.example", "timeout": 5}, "timeout"),
        ({"baseUrl": "https://x.example", "endpoints": {"get": "no slash"}}, "endpoints.get"),
    ],
)
def test_a_configuration_that_cannot_serve_names_its_place(
    values: dict[str, object], place: str
) -> None:
    with pytest.raises(ConfigInvalid) as wrong:
        _built("brain", values)
    assert wrong.value.place == place
