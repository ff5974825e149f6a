"""The list of models, their prompts, and the check of packaged files."""

from __future__ import annotations

import dataclasses
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from engine.embed import catalogue, packaged
from engine.embed.prompts import MAX_CHARS, Prompts, clean
from engine.errors import EmbeddingFailed
from engine.types import Purpose

GEMMA = Prompts(
    query="task: search result | query: {text}", document="title: {title} | text: {text}"
)


PACKAGED = ["multilingual-e5-small", "use-multilingual", "all-minilm-l6-v2-int8"]
INSTALLED = [
    "potion-base-8m",
    "all-minilm-l6-v2",
    "embeddinggemma",
    "ms-marco-minilm-l6-v2",
    "mmarco-minilm-l12-v2",
]


def test_the_catalogue_names_packaged_models_first() -> None:
    entries = catalogue.entries()
    assert [entry.id for entry in entries] == PACKAGED + INSTALLED
    assert [entry.id for entry in entries if entry.is_packaged] == PACKAGED
    dimensions = [entry.dimensions for entry in entries]
    assert dimensions == [(384,), (512,), (384,), (256,), (384,), (768, 512, 256, 128), (), ()]


def test_a_hub_model_is_pinned_to_a_commit_and_has_its_card() -> None:
    for model in INSTALLED:
        entry = catalogue.find(model)
        assert re.fullmatch(r"[0-9a-f]{40}", entry.revision)
        assert entry.card == "README.md"
        assert {file.role for file in entry.files} >= {"model", "tokenizer"}


def test_only_gemma_asks_to_accept_terms() -> None:
    asking = [entry for entry in catalogue.entries() if entry.terms is not None]
    assert [entry.id for entry in asking] == ["embeddinggemma"]
    assert "Gemma Terms of Use" in (asking[0].terms.notice if asking[0].terms else "")


def changed(**values: object) -> str:
    """The list with one entry, changed."""
    text = files("engine.embed").joinpath("catalogue.json").read_text(encoding="utf-8")
    raw = next(one for one in json.loads(text)["models"] if one["id"] == "all-minilm-l6-v2")
    return json.dumps({"models": [{**raw, **values}]})


def file(**values: object) -> list[dict[str, object]]:
    good = {"path": "onnx/model.onnx", "bytes": 10, "sha256": "a" * 64, "role": "model"}
    return [{**good, **values}]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "magic"}, "a kind"),
        ({"id": "../up"}, "an id"),
        ({"scripts": ["klingon"]}, "scripts"),
        ({"revision": "main"}, "a full revision"),
        ({"repository": ""}, "either a repository or packages"),
        ({"dimensions": [128, 384]}, "longest first"),
        ({"dimensions": []}, "dimensions"),
        ({"floor": 3}, "a floor"),
        ({"files": []}, "files"),
        ({"files": file(sha256="")}, "SHA-256"),
        ({"files": file(bytes=0)}, "size"),
        ({"files": file(path="../model.onnx")}, "path"),
        ({"files": file(path="/model.onnx")}, "path"),
        ({"files": file(role="virus")}, "role"),
        ({"files": file(surprise=1)}, "cannot be read"),
        ({"surprise": 1}, "cannot be read"),
        ({"pooling": "max"}, "a pooling"),
    ],
)
def test_a_wrong_entry_is_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(EmbeddingFailed, match=said) as caught:
        catalogue.parse(changed(**values))
    assert caught.value.code == "model_load_failed"


def test_a_studio_adds_models_of_its_own(tmp_path: Path) -> None:
    assert catalogue.entries(tmp_path) == catalogue.entries()
    (tmp_path / "catalogue.json").write_text(changed(id="my-model", licence="MIT"))
    assert catalogue.find("my-model", tmp_path).licence == "MIT"
    (tmp_path / "catalogue.json").write_text(changed())
    with pytest.raises(EmbeddingFailed, match="ids of their own"):
        catalogue.entries(tmp_path)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        catalogue.find("no-such-model")
    assert caught.value.code == "model_load_failed"


def test_the_packages_carry_the_files_of_the_catalogue() -> None:
    for entry in map(catalogue.find, PACKAGED):
        for path in packaged.verified(entry).values():
            assert path.is_file()


def test_a_missing_package_is_named() -> None:
    entry = catalogue.find("use-multilingual")
    absent = dataclasses.replace(entry.files[0], package="absent-package", module="absent_package")
    with pytest.raises(EmbeddingFailed, match="absent-package is not installed") as caught:
        packaged.locate(dataclasses.replace(entry, files=(absent,)))
    assert caught.value.code == "model_load_failed"


def test_a_file_of_another_version_is_refused() -> None:
    entry = catalogue.find("use-multilingual")
    other = dataclasses.replace(entry.files[1], sha256="0" * 64)
    with pytest.raises(EmbeddingFailed, match=r"not that of version 0\.2\.1"):
        packaged.verified(dataclasses.replace(entry, files=(other,)))


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        pytest.param(None, "title: none | text: hello", id="embed_prefix-02"),
        pytest.param("Notes", "title: Notes | text: hello", id="embed_prefix-03"),
        pytest.param("  ", "title: none | text: hello", id="embed_prefix-04"),
        pytest.param("a\nb {text}", "title: a b {text} | text: hello", id="one line, no template"),
    ],
)
def test_a_document_prompt_carries_the_title(title: str | None, wanted: str) -> None:
    assert GEMMA.apply("hello", purpose=Purpose.DOCUMENT, title=title) == wanted


def test_queries_and_documents_of_e5_have_their_own_prefix() -> None:
    prompts = catalogue.find("multilingual-e5-small").prompts
    assert prompts.apply("{title} tea", purpose=Purpose.QUERY) == "query: {title} tea"
    assert prompts.apply("tea", purpose=Purpose.DOCUMENT) == "passage: tea"


def test_a_cleaned_text_has_no_nul_and_no_lone_surrogate() -> None:
    assert clean("a\0b") == "a b"
    assert clean("\ud800x 字").encode("utf-8") == "?x 字".encode()


def test_a_cleaned_text_is_short_and_keeps_words_behind_blanks() -> None:
    assert len(clean("x" * 100_000)) == MAX_CHARS
    assert clean(" " * 100_000 + "end") == "end"
