"""Every visible text has a Japanese and a Simplified Chinese translation."""

from __future__ import annotations

import re

import pytest

from memory import catalogues

PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%")


@pytest.fixture(scope="module")
def wanted() -> set[str]:
    return {_first(message.id) for message in catalogues.template() if message.id}


def _first(identifier: object) -> str:
    return identifier[0] if isinstance(identifier, tuple | list) else str(identifier)


@pytest.mark.parametrize("locale", catalogues.LOCALES)
def test_every_text_is_translated(locale: str, wanted: set[str]) -> None:
    catalog = catalogues.read(locale)
    known = {_first(message.id) for message in catalog if message.id}
    assert sorted(wanted - known) == [], "run make messages and translate"
    assert catalogues.untranslated(catalog) == []


@pytest.mark.parametrize("locale", catalogues.LOCALES)
def test_translations_keep_the_placeholders(locale: str) -> None:
    for message in catalogues.read(locale):
        if not message.id:
            continue
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        original = message.id[-1] if isinstance(message.id, tuple | list) else message.id
        for text in texts:
            assert sorted(PLACEHOLDER.findall(str(text))) == sorted(PLACEHOLDER.findall(original))


@pytest.mark.parametrize("locale", catalogues.LOCALES)
def test_the_compiled_catalogue_is_current(locale: str) -> None:
    compiled = catalogues.path_of(locale).with_suffix(".mo").read_bytes()
    assert compiled == catalogues.compiled(catalogues.read(locale))
