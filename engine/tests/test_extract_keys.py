"""Keys of facts: the seed's slug, and a hash only where it loses something."""

from __future__ import annotations

import pytest

from engine.extract.extractor import extract
from engine.extract.keys import key_of, slug


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("window seats", "window_seats"),
        ("Next.js for the site", "next_js_for_the_site"),
        ("`grep -rn foo", "_grep_rn_foo"),
        ("over-explain things", "over_explain_things"),
    ],
)
def test_a_slug_is_the_seeds(text: str, wanted: str) -> None:
    assert slug(text) == wanted


@pytest.mark.parametrize("text", ["C++", "C#", ".NET", "咖啡", "café", "R&D", "深色模式 theme"])
def test_what_the_slug_loses_is_told_by_a_hash(text: str) -> None:
    assert key_of("preference", text) != f"preference:{slug(text)}"


@pytest.mark.parametrize("text", ["dark mode", "Next.js", "over-explain", "don't panic", "TCP/IP"])
def test_an_ordinary_object_has_no_hash(text: str) -> None:
    assert key_of("preference", text) == f"preference:{slug(text)}"


def test_objects_that_the_seed_confused_have_keys_of_their_own() -> None:
    names = ["C", "C++", "C#", "深色模式", "咖啡", "コーヒー", "카페"]
    assert len({key_of("preference", name) for name in names}) == len(names)


def test_width_and_case_make_no_other_key() -> None:
    assert key_of("preference", "Ｃ＋＋") == key_of("preference", "c++")


def test_two_objects_cut_alike_both_stay() -> None:
    start = "I prefer to keep every commit message in plain English "
    facts = extract(f"{start}because of reviewers. {start}because of tools.").facts
    assert len({fact.key for fact in facts}) == 2


def test_a_slot_is_named_for_what_it_holds() -> None:
    blue, name = (
        extract("My favorite color is blue").facts[0],
        extract("My name is Ada").facts[0],
    )
    assert (blue.key, name.key) == ("preference:favorite_color", "identity:name")
