"""The list of models, their prompts, and the check of packaged files."""

from __future__ import annotations

import dataclasses

import pytest

from engine.embed import catalogue, packaged
from engine.embed.prompts import MAX_CHARS, Prompts, clean
from engine.errors import EmbeddingFailed
from engine.types import Purpose

GEMMA = Prompts(
    query="task: search result | query: {text}", document="title: {title} | text: {text}"
)


def test_the_catalogue_names_the_two_packaged_models() -> None:
    assert [entry.id for entry in catalogue.entries()] == [
        "multilingual-e5-small",
        "use-multilingual",
    ]
    assert [entry.dimension for entry in catalogue.entries()] == [384, 512]


def test_every_model_has_a_licence_a_revision_and_hashed_files() -> None:
    for entry in catalogue.entries():
        assert entry.licence
        assert entry.revision
        assert entry.files
        assert all(len(file.sha256) == 64 for file in entry.files)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        catalogue.find("no-such-model")
    assert caught.value.code == "model_load_failed"


def test_the_packages_carry_the_files_of_the_catalogue() -> None:
    for entry in catalogue.entries():
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
