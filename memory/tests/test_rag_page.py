"""The ``[rag]`` tables that ``docs/vaults.md`` prints are those that the code reads."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import settings

from engine.vault.config import HTTP, OWN, RAG, SERVICE, Http, RagConfig, read

PAGE: Final = Path(settings.BASE_DIR, "docs/vaults.md").read_text(encoding="utf-8")
PRINTED: Final = re.sub(r"(?m)^# (?=\w+ = )", "", re.findall(r"```toml\n(.*?)```", PAGE, re.S)[0])
TABLE: Final[dict[str, Any]] = tomllib.loads(PRINTED)["rag"]
SERVICES: Final = ("embedding", "generation", "rerank")


def test_what_is_printed_can_be_read(tmp_path: Path) -> None:
    found = read({"rag": TABLE}, beside=tmp_path)
    assert None not in (found.embedding, found.generation, found.rerank)


def test_every_name_is_printed() -> None:
    assert set(TABLE) == {*RAG, *SERVICES, "http"}
    assert set(TABLE["http"]) == set(HTTP)


@pytest.mark.parametrize("service", SERVICES)
def test_every_name_of_a_service_is_printed(service: str) -> None:
    assert set(TABLE[service]) == {name for name in SERVICE if OWN.get(name, service) == service}


def test_the_values_that_are_printed_are_the_defaults(tmp_path: Path) -> None:
    own = read({}, beside=tmp_path)
    shown = read({"rag": TABLE}, beside=tmp_path)
    assert _plain(shown) == _plain(own)
    assert _http(shown.http) == _http(own.http)


def _plain(config: RagConfig) -> tuple[object, ...]:
    return (config.local_model_dir, config.local_threads, config.max_tokens)


def _http(http: Http) -> dict[str, object]:
    """All but the proxy, of which there is none unless one is named."""
    return {one.name: getattr(http, one.name) for one in fields(http) if one.name != "proxy_url"}
