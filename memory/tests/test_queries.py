"""Whatever a person types is words to look for: never an operator, never an error."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.types import Match, Mode
from memory.errors import Invalid
from memory.principal import Principal
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.asking import ask, contents
from memory.tests.conftest import Remember, Work


def test_fts_raw_query_02_one_unknown_word_does_not_empty_the_result(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "We deploy every Friday")
    assert ask(alice, "deploy Monday") == ["We deploy every Friday"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param("Node.js", "The server runs Node.js in production", id="fts_raw_query_03"),
        pytest.param("C++", "The parser is written in C++", id="fts_raw_query_04"),
        pytest.param("what's my name?", "My name is Ada", id="fts_raw_query_05"),
        pytest.param("AND", "A logical AND joins the two gates", id="fts_raw_query_07"),
        pytest.param("我喜欢喝咖啡", "我喜欢喝咖啡", id="fts_raw_query_11"),
        pytest.param("咖啡", "我喜欢喝咖啡", id="a word inside a Chinese sentence"),
        pytest.param("コーヒー", "毎朝コーヒーを飲みます", id="a word inside a Japanese sentence"),
        pytest.param("gpt-4o", "We call gpt-4o for summaries", id="a model's name"),
        pytest.param("deploy, Friday", "We deploy every Friday", id="a comma"),
    ],
)
@pytest.mark.parametrize("mode", [Mode.KEYWORD, Mode.HYBRID], ids=str)
def test_an_ordinary_query_finds_its_memory(
    alice: Principal, remember: Remember, mode: Mode, query: str, text: str
) -> None:
    remember(alice, text, key="wanted")
    remember(alice, "Bread wants flour", key="other")
    assert ask(alice, query, mode=mode)[0] == text


def test_fts_raw_query_08_a_column_filter_is_only_words(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "The content of the box", key="box")
    remember(alice, "We deploy every Friday", key="friday")
    assert sorted(ask(alice, "content:deploy")) == [
        "The content of the box",
        "We deploy every Friday",
    ]


def test_fts_raw_query_09_a_star_is_no_prefix_search(alice: Principal, remember: Remember) -> None:
    remember(alice, "We deploy every Friday")
    assert ask(alice, "dep*") == []


HOSTILE = [
    '"',
    "'",
    '""""',
    "(",
    ")(",
    "*",
    "NEAR(a b, 2)",
    "a NOT b",
    "OR",
    "NOT",
    "^tea",
    "{title body} : tea",
    "-tea",
    "tea AND",
    "'; DROP TABLE memory_memory; --",
    "%",
    "_",
    "\\",
    "?",
    "☕",
    "\u200b",
    "\u202e",
    "e\u0301",
    "tea\x01",
    "${jndi:ldap://x}",
    "o1",
    "scope : o2",
    "\ue100",
]


@pytest.mark.parametrize("mode", list(Mode), ids=str)
def test_a_hostile_query_is_no_error(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    remember(alice, "likes tea")
    work()
    for query in HOSTILE:
        assert set(ask(alice, query, mode=mode)) <= {"likes tea"}


@pytest.mark.parametrize("query", ["\0", "tea\0", "\ud800"])
def test_a_query_that_is_no_text_is_refused(alice: Principal, query: str) -> None:
    with pytest.raises(Invalid) as refused:
        ask(alice, query)
    assert list(refused.value.fields) == ["query"]


@pytest.mark.parametrize("query", ["?!", "…", "。、", "((()))"])
def test_a_query_without_a_word_finds_nothing_and_says_so(
    alice: Principal, remember: Remember, query: str
) -> None:
    remember(alice, "likes tea")
    view = retrieve(alice, RetrieveRequest(query, mode=Mode.KEYWORD))
    assert contents(view) == []
    assert [(item.tier, item.code) for item in view.retrieval.degraded] == [
        ("keyword", "empty_query")
    ]


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    query=st.text(max_size=60),
    mode=st.sampled_from(list(Mode)),
    match=st.sampled_from(list(Match)),
)
def test_any_text_is_answered_or_refused_as_invalid(
    alice: Principal, remember: Remember, work: Work, query: str, mode: Mode, match: Match
) -> None:
    remember(alice, "likes tea")
    work()
    try:
        found = ask(alice, query, mode=mode, match=match)
    except Invalid:
        found = []
    assert set(found) <= {"likes tea"}


@pytest.mark.parametrize(
    ("match", "found"),
    [(Match.ANY, 2), (Match.ALL, 1), (Match.PHRASE, 1)],
    ids=["any", "all", "phrase"],
)
def test_match_says_how_many_of_the_words_must_be_there(
    alice: Principal, remember: Remember, match: Match, found: int
) -> None:
    remember(alice, "green tea leaves", key="a")
    remember(alice, "black tea", key="b")
    assert len(ask(alice, "green tea", match=match)) == found
