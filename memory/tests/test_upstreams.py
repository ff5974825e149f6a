"""Which provider serves the chat of a model, and how it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from engine.providers.spec import ProviderSpec
from engine.providers.speech import ChatProtocol
from memory.errors import Forbidden, NotFound, TierDown
from memory.principal import SYSTEM, Principal
from memory.services import providers, upstreams

pytestmark = pytest.mark.django_db
LAB = "http://127.0.0.1:8000/v1/"


@pytest.fixture
def several(first_start: None) -> None:
    """A service for embeddings alone, two that chat by the names of their models, one for all."""
    for spec in (
        ProviderSpec("voyage", "voyage", api_key="v"),
        ProviderSpec("lab", base_url=LAB, api_key="l"),
        ProviderSpec("openai", "openai", api_key="o"),
        ProviderSpec("anthropic", "anthropic", api_key="a"),
        ProviderSpec("own", base_url=LAB, models=("qwen-*", "llama")),
        ProviderSpec("off", "mistral", enabled=False),
    ):
        providers.create(SYSTEM, spec)


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize(
    ("model", "provider", "sent"),
    [
        ("openai/gpt-5", "openai", "gpt-5"),
        ("gpt-5", "openai", "gpt-5"),
        ("claude-opus-4", "anthropic", "claude-opus-4"),
        ("qwen-3", "own", "qwen-3"),
        ("own/anything/at:all", "own", "anything/at:all"),
        ("mistral-large", "lab", "mistral-large"),
        ("voyage/rerank-2.5", "lab", "voyage/rerank-2.5"),
        ("openai/", "lab", "openai/"),
    ],
)
def test_a_model_is_served_by(alice: Principal, model: str, provider: str, sent: str) -> None:
    found = upstreams.route(alice, model)
    assert (found.provider, found.model) == (provider, sent)


@pytest.mark.usefixtures("several")
def test_an_upstream_tells_how_it_is_asked_and_hides_its_credential(alice: Principal) -> None:
    found = {entry.provider: entry for entry in upstreams.upstreams(alice)}
    assert list(found) == ["lab", "openai", "anthropic", "own"]
    anthropic = found["anthropic"]
    assert anthropic.protocol is ChatProtocol.ANTHROPIC
    assert anthropic.base_url == "https://api.anthropic.com/v1"
    assert anthropic.headers["x-api-key"] == "a"
    assert found["lab"].base_url == "http://127.0.0.1:8000/v1"
    assert found["lab"].headers == {"Authorization": "Bearer l"}
    assert found["own"].headers == {}
    assert "Bearer" not in repr(found["lab"])


def test_without_a_provider_no_model_is_known(alice: Principal) -> None:
    with pytest.raises(NotFound) as raised:
        upstreams.route(alice, "gpt-5")
    assert raised.value.code == "unknown_model"


def test_a_key_without_the_scope_chat_has_no_upstreams(manager: Principal) -> None:
    for act in (lambda: upstreams.upstreams(manager), lambda: upstreams.route(manager, "gpt-5")):
        with pytest.raises(Forbidden):
            act()


def test_an_address_is_judged_again_when_it_is_used(alice: Principal, settings: Any) -> None:
    settings.MEMORY_STUDIO_PROVIDERS = [ProviderSpec("bad", base_url="http://169.254.169.254/v1")]
    assert upstreams.upstreams(alice) == []
    with pytest.raises(TierDown) as raised:
        upstreams.route(alice, "bad/gpt")
    assert raised.value.code == "url_blocked"
