"""A static model that is installed can be chosen."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from engine.embed import catalogue, installed, static
from engine.testing import tiny_models
from engine.types import Purpose
from memory import wiring
from memory.principal import SYSTEM
from memory.services.settings import update
from memory.stored_settings import normalise

pytestmark = pytest.mark.django_db
REVISION = "a" * 40


@pytest.fixture
def home(tmp_path: Path, settings: Any) -> Path:
    """A home with one small static model of its own list."""
    settings.MEMORY_STUDIO_HOME = str(tmp_path)
    folder = tmp_path / "models" / "tiny-static"
    tiny_models.write_tokenizer(folder / static.TOKENIZER)
    tiny_models.write_safetensors(folder / static.MODEL, {"embeddings": tiny_models.table()})
    files = [_listed(folder, static.TOKENIZER, "tokenizer"), _listed(folder, static.MODEL, "model")]
    entry = {
        "id": "tiny-static",
        "kind": "static",
        "title": "Tiny",
        "dimensions": [tiny_models.DIM],
        "max_tokens": 512,
        "scripts": "all",
        "licence": "MIT",
        "repository": "a/b",
        "revision": REVISION,
        "files": files,
    }
    (folder / installed.MANIFEST).write_text(json.dumps({"revision": REVISION}))
    (tmp_path / "models" / catalogue.NAME).write_text(json.dumps({"models": [entry]}))
    return tmp_path


def _listed(folder: Path, name: str, role: str) -> dict[str, object]:
    data = (folder / name).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return {"path": name, "bytes": len(data), "sha256": digest, "role": role}


def resolve(source: str, *, enabled: bool) -> wiring.Resolved:
    stored = {"memoryEmbeddingSource": source, "memoryStaticEnabled": enabled}
    return wiring.resolve_source(normalise(stored))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("auto", id="embedding_resolve-03"),
        pytest.param("static", id="embedding_resolve-09"),
    ],
)
def test_an_installed_static_model_is_taken(home: Path, source: str) -> None:
    found = resolve(source, enabled=True)
    assert found.source is not None
    assert (found.family, found.source.name, found.source.model) == (
        "static",
        "static",
        "tiny-static",
    )
    vectors = found.source.embed(["tea"], purpose=Purpose.QUERY)
    assert vectors.shape == (1, tiny_models.DIM)


def test_auto_takes_it_only_when_static_models_are_switched_on(home: Path) -> None:
    assert resolve("auto", enabled=False).family == "local"


def test_without_one_auto_stays_with_the_packaged_model(tmp_path: Path, settings: Any) -> None:
    settings.MEMORY_STUDIO_HOME = str(tmp_path)
    assert resolve("auto", enabled=True).family == "local"


@pytest.mark.parametrize("named", ["tiny-static", "maker/Tiny-Static", "another", ""])
def test_the_environment_names_the_static_model(home: Path, settings: Any, named: str) -> None:
    settings.MEMORY_STATIC_MODEL = named
    source = resolve("static", enabled=False).source
    assert source is not None
    assert source.model == "tiny-static"


def test_installed_models_may_lie_elsewhere(home: Path, settings: Any, tmp_path: Path) -> None:
    settings.MEMORY_STATIC_CACHE_DIR = str(tmp_path / "models")
    settings.MEMORY_STUDIO_HOME = str(tmp_path / "empty")
    assert resolve("static", enabled=False).source is not None


@pytest.mark.parametrize(
    ("named", "model"),
    [
        ("Xenova/all-MiniLM-L6-v2", "all-minilm-l6-v2"),
        ("use-multilingual", "use-multilingual"),
        ("", "multilingual-e5-small"),
        ("a b", "multilingual-e5-small"),
    ],
)
def test_the_environment_names_the_local_model_until_one_is_chosen(
    first_start: None, settings: Any, named: str, model: str
) -> None:
    settings.MEMORY_TRANSFORMERS_MODEL = named
    assert wiring.settings().local_model == model
    update(SYSTEM, {"localModel": "use-multilingual"})
    assert wiring.settings().local_model == "use-multilingual"
