"""Providers that are set up in the environment or in ``config.toml``."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.providers.spec import ProviderSpec
from memstudio import providers
from memstudio.errors import StartError

PREFIX = "MEMORY_STUDIO_PROVIDER_"
FILE = """
[[providers]]
name = "openai"
api_key_env = "OPENAI_API_KEY"

[[providers]]
name = "lab"
kind = "vllm"
base_url = "http://10.0.0.5:8000/v1"
models = ["qwen-*"]
enabled = false
"""


def in_file(home: Path, text: str) -> list[ProviderSpec]:
    (home / "config.toml").write_text(text, encoding="utf-8")
    return providers.from_file(home)


def test_without_a_file_or_variables_there_is_none(tmp_path: Path) -> None:
    assert providers.from_file(tmp_path) == []
    assert providers.from_environment() == {}


def test_a_file_describes_providers_in_order(tmp_path: Path) -> None:
    assert in_file(tmp_path, FILE) == [
        ProviderSpec("openai", "openai", key_variable="OPENAI_API_KEY"),
        ProviderSpec("lab", "vllm", "http://10.0.0.5:8000/v1", models=("qwen-*",), enabled=False),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[providers", "cannot be read"),
        ("providers = 1", "written as"),
        ("providers = [1]", "written as"),
        ("[[providers]]", "name cannot be as it is"),
        ('[[providers]]\nname = "x"', "base_url cannot be as it is .missing"),
        ('[[providers]]\nname = "openai"\nkind = 1', "kind has a value of the wrong type"),
        ('[[providers]]\nname = "openai"\nmodels = "a"', "models has a value of the wrong type"),
        ('[[providers]]\nname = "openai"\nurl = "a"', "url is not known"),
        ('[[providers]]\nname = "openai"\nkind = "acme"', "unknown_kind"),
        ('[[providers]]\nname = "openai"\n' * 2, "two providers have the same name"),
        ('[[providers]]\nname = "openai"\nbase_url = "http://169.254.169.254"', "blocked_address"),
    ],
)
def test_a_file_that_cannot_be_right_stops_the_start(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(StartError, match=told):
        in_file(tmp_path, text)


def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="api_key_env") as raised:
        in_file(tmp_path, '[[providers]]\nname = "openai"\napi_key = "sk-secret"')
    assert "sk-secret" not in str(raised.value)


def test_variables_set_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "key"
    secret.write_text("from a file\n", encoding="utf-8")
    for name, value in {
        "OPENAI_API_KEY": "sk-1",
        "MY_LAB_BASE_URL": "http://10.0.0.5:8000/v1",
        "MY_LAB_MODELS": "a, b-*",
        "MY_LAB_ENABLED": "no",
        "MY_LAB_KIND": "",
        "COHERE_API_KEY_FILE": str(secret),
    }.items():
        monkeypatch.setenv(PREFIX + name, value)
    assert providers.from_environment() == {
        "openai": {"api_key": "sk-1"},
        "my-lab": {
            "base_url": "http://10.0.0.5:8000/v1",
            "models": ("a", "b-*"),
            "enabled": False,
        },
        "cohere": {"api_key": "from a file"},
    }


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OPENAI", "x", "sets nothing that a provider has"),
        ("OPENAI_COLOUR", "x", "sets nothing that a provider has"),
        ("OPENAI_ENABLED", "perhaps", "must be true or false"),
        ("OPENAI_KIND", "acme", "unknown_kind"),
        ("OPENAI_BASE_URL", "ftp://a.example", "scheme"),
        ("OPENAI_API_KEY", "s\u00e9cret", "bad_key"),
    ],
)
def test_a_variable_that_cannot_be_right_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(StartError, match=told) as raised:
        providers.from_environment()
    assert "cret" not in str(raised.value)
