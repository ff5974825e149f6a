"""The panel Qdrant of the tab Engine: saving, trying, searching, cleaning up, building."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from engine.testing.fake_qdrant import FakeQdrant, serving
from memory.models import Job
from memory.principal import Principal
from memory.services import settings as settings_service
from memory.tests.conftest import Remember, Work
from memory.tests.qdrant_server import ALIAS, switch_on
from memory.tests.views.conftest import Studio

TOOLS = "qdrant-tools"


@pytest.fixture
def server() -> Iterator[FakeQdrant]:
    with serving() as made:
        yield made


def form(server: FakeQdrant, **changes: str) -> dict[str, str]:
    """The form with the double's place, switched on."""
    return {
        "qdrant_enabled": "on",
        "qdrant_host": "127.0.0.1",
        "qdrant_port": str(server.port),
        "qdrant_collection": ALIAS,
        "qdrant_embedding_model": "x/y",
        "qdrant_quantization": "none",
        "qdrant_api_key": "",
        **changes,
    }


def save(studio: Studio, data: dict[str, str]) -> str:
    return str(studio.post("/engine/qdrant/", data, target="engine-qdrant").content.decode())


def press(studio: Studio, action: str, **data: str) -> str:
    response = studio.post(f"/engine/qdrant/{action}/", dict(data), target=TOOLS)
    return str(response.content.decode())


def test_saving_says_how_a_real_search_went(studio: Studio, server: FakeQdrant) -> None:
    assert re.search(
        r"Qdrant settings saved\. A real search took [\d.]+ ms\.", save(studio, form(server))
    )
    server.stop()
    body = save(studio, form(server, qdrant_quantization="int8"))
    assert "Qdrant settings saved. Qdrant cannot be reached." in body
    assert "notice-warn" in body


def test_a_stored_key_is_kept_until_it_is_removed(studio: Studio, server: FakeQdrant) -> None:
    assert "Remove the stored key" not in studio.text("/engine/")
    body = save(studio, form(server, qdrant_api_key="q-secret"))
    assert "stored; leave empty to keep it" in body
    assert "q-secret" not in body
    save(studio, form(server))
    assert settings_service.get().qdrant_api_key
    save(studio, form(server, qdrant_forget_key="on"))
    assert not settings_service.get().qdrant_api_key


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("qdrant_host", "http://169.254.169.254", "The address of Qdrant is not allowed."),
        ("qdrant_collection", "a/b", "The name of a collection holds letters"),
        ("qdrant_port", "70000", "less than or equal to 65535"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    studio: Studio, server: FakeQdrant, name: str, value: str, message: str
) -> None:
    data = form(server, **{name: value})
    response = studio.post("/engine/qdrant/", data, target="engine-qdrant")
    assert response.status_code == 422
    body = response.content.decode()
    assert f'id="set-{name}_error"' in body
    assert message in body
    assert not settings_service.get().qdrant_enabled


def test_the_connection_is_tested_by_a_real_search(studio: Studio, server: FakeQdrant) -> None:
    body = press(studio, "test")
    assert "No host of Qdrant is set." in body
    save(studio, form(server))
    assert re.search(r"A real search took [\d.]+ ms\.", press(studio, "test"))
    server.api_key = "another"
    assert "<code>qdrant_auth</code>" in press(studio, "test")


def test_a_search_shows_what_qdrant_alone_finds(
    studio: Studio, alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes <b>green</b> tea", key="drink")
    work()
    switch_on(server)
    work()
    body = press(studio, "search", query="green tea")
    assert "likes &lt;b&gt;green&lt;/b&gt; tea" in body
    assert "<code>drink</code>" in body
    assert 'value="green tea"' in body
    assert "The query is longer than" in press(studio, "search", query="tea " * 400)


def test_a_clean_up_says_what_it_removed(
    studio: Studio, alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    assert "No host of Qdrant is set." in press(studio, "clean-up")
    remember(alice, "likes tea")
    work()
    switch_on(server)
    work()
    assert "0 points of expired memories and 0 strays removed." in press(studio, "clean-up")


def test_a_build_is_started_and_its_progress_shown(
    studio: Studio, alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes tea")
    work()
    switch_on(server)
    work()
    remember(alice, "likes coffee", key="coffee")
    work()
    assert Job.objects.filter(kind="mirror", state=Job.State.SUCCEEDED).exists()
    assert "Mirror to Qdrant" not in studio.text("/engine/", target="engine-work")
    assert 'hx-trigger="every 1s"' not in studio.text("/engine/", target="qdrant-state")
    assert "The build has started" in press(studio, "build")
    job = Job.objects.get(kind="backfill", state=Job.State.QUEUED)
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING, done=3, total=10)
    state = studio.text("/engine/", target="qdrant-state")
    assert 'hx-trigger="every 1s"' in state
    assert '<progress value="3" max="10"' in state
    assert "Build in Qdrant" in studio.text("/engine/", target="engine-work")


@pytest.mark.parametrize("action", ["test", "search", "clean-up", "build"])
def test_without_scripts_every_test_answers_with_the_page(studio: Studio, action: str) -> None:
    response = studio.post(f"/engine/qdrant/{action}/", {"query": "tea"})
    assert response.status_code == 200
    body = response.content.decode()
    assert "<h1" in body
    assert "No host of Qdrant is set." in body


def test_the_vector_store_card_says_why_the_index_here_serves(
    studio: Studio, alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes tea")
    work()
    switch_on(server)
    work()
    server.stop()
    body = studio.text("/engine/", target="engine-tiers")
    assert body.count("Qdrant cannot be reached. Searches use the index here.") == 2
