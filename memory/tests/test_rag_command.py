"""``manage.py rag``: models are listed, installed from a mirror on this machine, and removed."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from engine.embed import catalogue
from engine.testing import tiny_models
from engine.testing.fake_provider import Answer, Provider, Request, serving
from memory.local_sources import from_catalogue

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PATHS = ("onnx/model.onnx", "tokenizer.json")


@pytest.fixture
def home(tmp_path: Path, settings: Any) -> Path:
    settings.MEMORY_STUDIO_HOME = tmp_path / "home"
    (tmp_path / "home" / "models").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def mirror(home: Path, tmp_path: Path) -> Iterator[Provider]:
    """A server with a small model, which the studio's own list names twice: with and without
    terms."""
    source = tmp_path / "source"
    tiny_models.write_encoder(source / PATHS[0])
    tiny_models.write_tokenizer(source / PATHS[1])
    contents = {path: (source / path).read_bytes() for path in PATHS}
    model = entry_of(contents)
    terms = {"url": "https://example.com/terms", "notice": "Be kind."}
    models = {"models": [model, {**model, "id": "small-with-terms", "terms": terms}]}
    (home / "models" / catalogue.NAME).write_text(json.dumps(models))

    def answer(request: Request) -> Answer:
        _, _, path = request.path.partition(f"/a/b/resolve/{COMMIT}/")
        return Answer(200, contents[path]) if path in contents else Answer(404)

    with serving() as provider:
        provider.respond = answer
        yield provider


def entry_of(contents: dict[str, bytes]) -> dict[str, object]:
    files = [
        {
            "path": path,
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "role": role,
        }
        for (path, content), role in zip(contents.items(), ("model", "tokenizer"), strict=True)
    ]
    return {
        "id": "small",
        "kind": "onnx",
        "title": "A small encoder",
        "dimensions": [tiny_models.DIM],
        "max_tokens": 64,
        "scripts": "all",
        "pooling": "mean",
        "licence": "MIT",
        "repository": "a/b",
        "revision": COMMIT,
        "files": files,
    }


def rag(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("rag", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def hub(mirror: Provider) -> str:
    return f"--hub=http://127.0.0.1:{mirror.port}"


def state_of(name: str) -> str:
    rows = {row["id"]: row for row in json.loads(rag("model-list", "--json")[0])}
    return str(rows[name]["state"])


def test_every_model_is_listed_with_its_state(home: Path) -> None:
    text, _ = rag("model-list")
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert list(lines) == [entry.id for entry in catalogue.entries()]
    assert "packaged" in lines["multilingual-e5-small"]
    assert "not installed" in lines["embeddinggemma"]
    assert "219 MB" in lines["embeddinggemma"]


def test_a_model_is_installed_used_and_removed(home: Path, mirror: Provider) -> None:
    text, told = rag("model-install", "small", hub(mirror))
    assert text.startswith("Installed small (")
    assert "100 %" in told
    assert state_of("small") == "installed"
    source = from_catalogue("small", models_dir=home / "models", template="t1")
    assert source.health().available
    assert rag("model-install", "small", hub(mirror))[0].startswith("Already installed, checked:")
    assert rag("model-remove", "small")[0].startswith("Removed small, ")
    assert state_of("small") == "not installed"


def test_terms_are_shown_and_have_to_be_accepted(home: Path, mirror: Provider) -> None:
    with pytest.raises(CommandError, match="terms_not_accepted"):
        rag("model-install", "small-with-terms", hub(mirror))
    assert mirror.requests == []
    _, told = rag("model-install", "small-with-terms", "--accept-terms", hub(mirror))
    assert "Be kind.\n  https://example.com/terms" in told
    notice = (home / "models" / "small-with-terms" / "NOTICE").read_text()
    assert "Be kind." in notice


def test_the_vaults_model_is_the_one_installed_without_a_name(home: Path) -> None:
    with pytest.raises(CommandError, match=r"ai\.google\.dev/gemma/terms"):
        rag("model-install")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("model-install", "no-such-model"), "model_load_failed"),
        (("model-install", "use-multilingual"), "packaged_model"),
        (("model-install", "small", "--mirror=http://mirror.example/x"), "url_blocked"),
        (("model-remove", "small"), "model_not_installed"),
    ],
)
def test_a_refusal_is_one_sentence(
    home: Path, mirror: Provider, arguments: tuple[str, ...], code: str
) -> None:
    with pytest.raises(CommandError, match=rf"\({code}\)$") as caught:
        rag(*arguments)
    assert "\n" not in str(caught.value)
    assert mirror.requests == []
