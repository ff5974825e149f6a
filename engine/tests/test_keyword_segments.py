"""Segments and their vocabulary against a plain count."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.columns.table import decode
from engine.keyword.cutting import segment_of
from engine.keyword.merging import merged
from engine.keyword.segment import Segment
from engine.keyword.vocabulary import Vocabulary

WEIGHTS = (5, 1, 2)
TERMS = st.sampled_from(["tea", "te", "t", "茶", "茶館", "お", "おちゃ", "차", "Tea", "\ue02b"])
FIELD = st.lists(TERMS, max_size=6).map(" ".join)
TEXTS = st.lists(st.tuples(FIELD, FIELD, FIELD), max_size=12)

Text = tuple[str, str, str]


def made(texts: list[Text], first: int = 1) -> Segment:
    records = [
        (first + place, 1, -1, "", "factual", False, False, False, 0, 1)
        for place in range(len(texts))
    ]
    fields = [(a.encode(), b.encode(), c.encode()) for a, b, c in texts]
    return segment_of(decode(records, {}, {}), fields, WEIGHTS)


def counted(texts: list[Text], first: int = 1) -> dict[tuple[int, bytes], int]:
    expected: Counter[tuple[int, bytes]] = Counter()
    for place, text in enumerate(texts, first):
        for field, weight in zip(text, WEIGHTS, strict=True):
            for term in field.encode().lower().split():
                expected[place, term] += weight
    return dict(expected)


def held(segment: Segment) -> dict[tuple[int, bytes], int]:
    found: dict[tuple[int, bytes], int] = {}
    for number, word in enumerate(segment.terms.words()):
        rows, weights = segment.postings(number)
        assert list(rows) == sorted(set(rows.tolist()))
        for row, weight in zip(rows.tolist(), weights.tolist(), strict=True):
            if segment.table.alive[row]:
                found[int(segment.table.passage[row]), word] = weight
    return found


@given(TEXTS)
@settings(max_examples=60, deadline=None, database=None)
def test_a_segment_holds_each_term_of_each_passage(texts: list[Text]) -> None:
    segment = made(texts)
    assert held(segment) == counted(texts)
    sizes = [sum(len(field.split()) for field in text) for text in texts]
    assert segment.lengths.tolist() == sizes
    assert segment.total == sum(sizes)


@given(TEXTS, TEXTS, TEXTS, st.sets(st.integers(1, 40)))
@settings(max_examples=60, deadline=None, database=None)
def test_merging_keeps_what_is_alive_and_no_word_of_the_dead(
    one: list[Text], two: list[Text], three: list[Text], gone: set[int]
) -> None:
    parts = [made(one), made(two, 20), made(three, 40)]
    dead = np.array(sorted(gone), np.int64)
    parts = [part.without(part.find(dead)) for part in parts]
    whole = merged(parts)
    expected = {**counted(one), **counted(two, 20), **counted(three, 40)}
    expected = {key: weight for key, weight in expected.items() if key[0] not in gone}
    assert held(whole) == expected
    assert set(whole.terms.words()) == {term for _, term in expected}
    assert whole.dead == 0
    for number in range(len(whole.terms)):
        assert whole.frequency(number) == whole.postings(number)[0].size


@given(TEXTS, st.sets(st.integers(1, 12)))
@settings(max_examples=40, deadline=None, database=None)
def test_frequencies_do_not_count_the_dead(texts: list[Text], gone: set[int]) -> None:
    segment = made(texts)
    segment = segment.without(segment.find(np.array(sorted(gone), np.int64)))
    alive = Counter(term for number, term in counted(texts) if number not in gone)
    for number, word in enumerate(segment.terms.words()):
        assert segment.frequency(number) == alive[word]
    assert segment.live == len(texts) - len(gone & set(range(1, len(texts) + 1)))


def test_a_vocabulary_finds_terms_and_what_begins_with_a_prefix() -> None:
    chance = random.Random(1)  # noqa: S311
    words = sorted({"".join(chance.choices("ab茶館お", k=4)).encode() for _ in range(300)})
    vocabulary = Vocabulary.of(words)
    assert vocabulary.words() == words
    assert [vocabulary.find(word) for word in words] == list(range(len(words)))
    assert vocabulary.find(b"zzz") == -1
    for prefix in ("a", "茶", "お館", "x"):
        found = [words[number] for number in vocabulary.beginning_with(prefix.encode())]
        assert found == [word for word in words if word.startswith(prefix.encode())]


def test_an_empty_vocabulary_finds_nothing() -> None:
    empty = Vocabulary.of([])
    assert (len(empty), empty.words(), empty.find(b"tea")) == (0, [], -1)
    assert list(empty.beginning_with(b"t")) == []


def test_terms_that_begin_alike_are_one_posting_of_each_passage() -> None:
    segment = made([("おち おか", "お", ""), ("", "茶", ""), ("", "", "おか")])
    rows, weights = segment.postings_of(segment.terms.beginning_with("お".encode()))
    assert (rows.tolist(), weights.tolist()) == ([0, 2], [11, 2])
