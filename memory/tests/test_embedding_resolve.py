"""Which embedding source the settings choose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.testing.fake_models import openai_embeddings
from engine.testing.fake_provider import Provider, serving
from engine.types import Purpose
from memory import wiring
from memory.stored_settings import normalise

pytestmark = pytest.mark.django_db
MODEL = "openai/text-embedding-3-small"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        running.respond = openai_embeddings
        yield running


def resolve(**stored: Any) -> wiring.Resolved:
    names = {
        "source": "memoryEmbeddingSource",
        "url": "memoryEmbeddingCustomBaseUrl",
        "model": "memoryEmbeddingCustomModelId",
        "transformers": "memoryTransformersEnabled",
    }
    return wiring.resolve_source(normalise({names[name]: stored[name] for name in stored}))


def test_embedding_resolve_02_auto_takes_a_configured_endpoint(provider: Provider) -> None:
    found = resolve(source="auto", url=f"http://127.0.0.1:{provider.port}/v1", model=MODEL)
    assert found.source is not None
    signature = wiring.signature_of(found.source)
    assert (signature.source, signature.model, signature.dim) == ("remote", MODEL, 64)


def test_embedding_resolve_07_remote_takes_it_too_and_asks_for_the_dimension_once(
    provider: Provider,
) -> None:
    found = resolve(source="remote", url=f"http://127.0.0.1:{provider.port}/v1", model=MODEL)
    assert found.source is not None
    assert wiring.signature_of(found.source) == wiring.signature_of(found.source)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("given", [{"url": "http://10.0.0.5/v1"}, {"model": MODEL}, {}])
def test_half_an_endpoint_is_none(given: dict[str, str]) -> None:
    found = resolve(source="remote", **given)
    assert (found.source, found.off.code if found.off else "") == (None, "no_key")


def test_a_blocked_endpoint_says_so() -> None:
    found = resolve(source="remote", url="http://169.254.169.254/v1", model=MODEL)
    assert (found.source, found.off.code if found.off else "") == (None, "url_blocked")


@pytest.mark.parametrize(
    ("source", "enabled"),
    [
        pytest.param("auto", True, id="embedding_resolve-04"),
        pytest.param("auto", False, id="auto without any switch"),
        pytest.param("transformers", True, id="embedding_resolve-11"),
        pytest.param("transformers", False, id="embedding_resolve-12"),
    ],
)
def test_a_packaged_model_needs_no_switch(source: str, enabled: bool) -> None:
    found = resolve(source=source, transformers=enabled)
    assert found.source is not None
    assert (found.family, found.source.name) == ("local", "local")
    assert found.source.embed(["tea"], purpose=Purpose.QUERY).shape == (1, 64)


def test_embedding_resolve_10_without_a_static_model_there_is_no_source() -> None:
    found = resolve(source="static")
    assert (found.source, found.off is None) == (None, False)
