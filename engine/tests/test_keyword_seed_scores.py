"""BM25 of the analyzer ``seed`` on six small documents, to six decimals (second seed's cases)."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter

import pytest

from engine.errors import InvalidQuery
from engine.keyword.fts5 import Fts5Index
from engine.testing.contracts_keyword import ALICE, NOW_MS, passage
from engine.text.tokenize import analyzer
from engine.types import Match, Scope

DOCUMENTS = (
    ("退款政策", "所有订单7天内可退款。Refunds are issued in 7 days.", "policy finance"),
    ("Shipping", "We ship worldwide. 发货时间为3天。", "logistics"),
    ("发票", "开具增值税发票 invoice", "finance 退款"),
    ("Notes", "Random notes about rockets 🚀", "misc"),
    ("保修", "保修期一年 warranty one year", "support"),
    ("API", "REST API rate limits and retry policy", "dev"),
)
SCOPE = Scope(now_ms=NOW_MS, owners=frozenset({ALICE}))


@pytest.fixture
def index() -> Fts5Index:
    database = sqlite3.connect(":memory:", isolation_level=None)
    index = Fts5Index(lambda: database, analyzer=analyzer("seed"), owns_scope=True)
    index.ensure()
    index.upsert(
        [
            passage(number, body, title=title, meta=meta)
            for number, (title, body, meta) in enumerate(DOCUMENTS, 1)
        ]
    )
    return index


def found(index: Fts5Index, query: str, match: Match) -> list[tuple[int, float]]:
    hits = index.search(query, scope=SCOPE, limit=100, match=match)
    return [(hit.passage_id, round(hit.score, 6)) for hit in hits]


@pytest.mark.parametrize(
    ("query", "match", "expected"),
    [
        ("退款", Match.ALL, [(1, 0.98928), (3, 0.869332)]),
        ("退款 finance", Match.ALL, [(3, 1.738663), (1, 1.662285)]),
        ("退款 finance", Match.PHRASE, []),
        ("invoice 退款", Match.ALL, [(3, 2.316634)]),
        ("policy", Match.ANY, [(1, 0.673005), (6, 0.596502)]),
        ("7天", Match.ALL, [(1, 1.487655)]),
        ("7天", Match.PHRASE, [(1, 1.487655)]),
        ("rate limits", Match.PHRASE, [(6, 2.637095)]),
        ("limits rate", Match.PHRASE, []),
        ("rockets 🚀", Match.ALL, [(4, 2.894605)]),
        ("ｐｏｌｉｃｙ", Match.PHRASE, [(1, 0.673005), (6, 0.596502)]),
        ("发货时间", Match.PHRASE, [(2, 2.52479)]),
        ("NEAR(refunds days)", Match.ANY, [(1, 2.010951)]),
        ("refunds AND NOT days", Match.ANY, [(1, 2.010951), (6, 1.318547)]),
        ("polic*", Match.ANY, []),
        ("退款 + policy", Match.ANY, [(1, 1.662285), (3, 0.869332), (6, 0.596502)]),
    ],
)
def test_scores_are_those_of_the_second_seed(
    index: Fts5Index, query: str, match: Match, expected: list[tuple[int, float]]
) -> None:
    assert found(index, query, match) == expected


def test_punctuation_alone_is_an_empty_query(index: Fts5Index) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        found(index, "(((", Match.ANY)
    assert refusal.value.code == "empty_query"


def test_a_part_of_a_longer_word_is_found_by_modes_all_and_phrase(index: Fts5Index) -> None:
    assert found(index, "值税", Match.ALL) == [(3, 0.0)]
    assert found(index, "值税发", Match.PHRASE) == [(3, 0.0)]
    assert found(index, "值税发 退款", Match.ALL) == [(3, found(index, "退款", Match.ANY)[1][1])]


def test_scores_follow_the_published_formula(index: Fts5Index) -> None:
    analyze = analyzer("seed").document_terms
    fields = [[analyze(field) for field in document] for document in DOCUMENTS]
    sizes = [sum(map(len, document)) for document in fields]
    average = sum(sizes) / len(sizes)
    term, weights, k1, b = "退款", (5, 1, 2), 1.2, 0.75
    weighted = [
        sum(weight * Counter(field)[term] for weight, field in zip(weights, document, strict=True))
        for document in fields
    ]
    matching = sum(1 for count in weighted if count)
    idf = max(math.log((len(fields) - matching + 0.5) / (matching + 0.5)), 1e-6)
    scores = {
        number: round(idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * size / average)), 6)
        for number, (tf, size) in enumerate(zip(weighted, sizes, strict=True), 1)
        if tf
    }
    assert dict(found(index, term, Match.ANY)) == scores
