"""Each rule pack on its own fixtures: sentences of ours, and neighbours that are no facts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.extract.extractor import extract
from engine.extract.facts import Fact, Speaker
from engine.extract.packs.reading import LANGUAGES, pack
from engine.extract.screening import read_turn
from engine.text.normalize import normalize

FIXTURES = Path(__file__).with_name("extraction_fixtures")
Wanted = list[tuple[str, str, str]]


def fixtures() -> list[tuple[str, Wanted]]:
    """Every line of every fixture file: a text, and category, polarity and words of its facts."""
    lines = [
        line
        for language in LANGUAGES
        for line in (FIXTURES / f"{language}.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("# ")
    ]
    return [_parsed(line) for line in lines]


def _parsed(line: str) -> tuple[str, Wanted]:
    text, _, facts = line.partition("=>")
    parts = [part.strip().partition(" ") for part in facts.split("|") if part.strip()]
    signs = {"+": "positive", "-": "negative"}
    return text.strip().replace("\\n", "\n"), [
        (name[:-1], signs[name[-1]], words) for name, _, words in parts
    ]


@pytest.mark.parametrize(("text", "wanted"), fixtures(), ids=lambda value: str(value)[:40])
def test_a_text_gives_its_facts_and_no_others(text: str, wanted: Wanted) -> None:
    facts = list(read_turn(text).stored)
    for category, polarity, words in wanted:
        met = next((fact for fact in facts if _is(fact, category, polarity, words)), None)
        assert met is not None, (category, polarity, words, facts)
        facts.remove(met)
    assert facts == []


def _is(fact: Fact, category: str, polarity: str, words: str) -> bool:
    said = normalize(f"{fact.statement} {fact.content}")
    return (fact.category, fact.polarity) == (category, polarity) and normalize(words) in said


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("speaker", Speaker)
def test_a_pack_compiles_for_either_speaker(language: str, speaker: Speaker) -> None:
    rules = pack(language, speaker)
    assert rules.language == language
    assert all("o" in rule.pattern.groupindex for rule in rules.rules)


def test_content_is_what_is_liked_and_the_statement_the_whole_clause() -> None:
    (fact,) = extract("Well, on long flights I really prefer window seats, thanks!").facts
    assert fact.content == "window seats"
    assert fact.statement == "on long flights I really prefer window seats"
    assert fact.key == "preference:window_seats"


def test_a_negative_keeps_its_negation_in_the_content() -> None:
    (fact,) = extract("I don't like modal dialogs.").facts
    assert (fact.content, fact.polarity) == ("don't like modal dialogs", "negative")


def test_a_changed_mind_has_the_key_of_the_earlier_one() -> None:
    (liked,) = extract("I like Java").facts
    (disliked,) = extract("I don't like Java").facts
    assert liked.key == disliked.key
    (last,) = extract("I like Java. No, I don't like Java.").facts
    assert last.polarity == "negative"


def test_an_assistant_speaks_of_its_user_and_is_trusted_less() -> None:
    (fact,) = extract("Noted: you prefer dark mode.", speaker=Speaker.ASSISTANT).facts
    assert (fact.content, fact.speaker) == ("dark mode", "assistant")
    assert fact.confidence < 0.7
    assert extract("I prefer to check two sources.", speaker=Speaker.ASSISTANT).facts == ()
    assert extract("我喜欢先查资料。", speaker=Speaker.ASSISTANT).facts == ()
    (chinese,) = extract("好的,你喜欢深色模式。", speaker=Speaker.ASSISTANT).facts
    assert chinese.content == "深色模式"


def test_a_guarded_clause_tells_why() -> None:
    guarded = extract("Do I like Python? My boss says I always lie.").guarded
    assert {piece.reason for piece in guarded} >= {"hearsay"}


def test_of_a_long_text_the_end_counts() -> None:
    filler = "So it goes.\n" * 6000
    assert extract(f"I prefer tea.\n{filler}").facts == ()
    assert len(extract(f"{filler}I prefer tea.").facts) == 1


def test_content_is_cut_at_five_hundred_characters() -> None:
    (fact,) = extract("I prefer " + "very " * 200 + "long texts").facts
    assert len(fact.content) <= 500


@pytest.mark.parametrize(
    "text",
    [
        "at x " * 3000 + ", zzz I like it, ",
        "I like a, " * 3000,
        "我" * 20_000,
        "私は" + "が" * 20_000,
        "我，" * 20_000,
        "其实另外我觉得" * 8000,
        "実はちなみにまた" * 7000,
        "Dear x\n" * 6000,
        "# a\n" * 10_000,
    ],
    ids=[
        "at",
        "commas",
        "one character",
        "particles",
        "pieces",
        "led in",
        "led in too",
        "Dear",
        "#",
    ],
)
def test_no_text_holds_a_worker_up(text: str) -> None:
    began = time.process_time()
    extract(text)
    assert time.process_time() - began < 15, "alone it takes two seconds at most"


def test_an_article_is_not_read_as_if_its_writer_had_left_out_a_pronoun() -> None:
    article = "该校创立于一九二一年,每年举行校庆,统一用校服。" * 10
    assert extract(article).facts == ()
    assert extract("每年都去看校庆").facts


def test_a_preference_without_a_verb_is_read() -> None:
    (fact,) = extract("vim over emacs").facts
    assert fact.content == "vim over emacs"


def test_a_fact_at_the_end_of_a_sentence_without_end_is_found() -> None:
    assert [fact.content for fact in extract("word " * 9000 + "I prefer nano.").facts] == ["nano"]
