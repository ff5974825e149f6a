"""``manage.py evaluate`` on a small set: figures, modes, the cache, and nothing left behind."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.evaluation.measures import ndcg, percentile, recall, reciprocal_rank
from memory.models import ApiKey, Memory

KEYS = [
    "set",
    "mode",
    "documents",
    "queries",
    "recall@1",
    "recall@5",
    "recall@10",
    "recall@20",
    "ndcg@10",
    "mrr@10",
    "p50_ms",
    "p95_ms",
]
CORPUS = [
    {"id": "1", "title": "Tea", "text": "Ana drinks green tea", "owner": "ana"},
    {"id": "2", "title": "Pets", "text": "Ana has a cat", "owner": "ana", "date": "2001-01-01"},
    {"id": "1", "title": "Tea", "text": "Ben drinks black tea", "owner": "ben"},
]
QUERIES = [
    {"id": "q1", "text": "who drinks green tea", "owner": "ana"},
    {"id": "q2", "text": "cat", "owner": "ana"},
    {"id": "q3", "text": "tea", "owner": "ben"},
    {"id": "q4", "text": "has no judgement", "owner": "ben"},
]
QRELS = "query\tdoc\tscore\nq1\t1\t1\nq2\t2\t2\nq3\t1\t1\nq4\t1\t0\n"


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set in the common format, with a document far out of retention."""
    made = tmp_path / "tiny-en"
    made.mkdir()
    (made / "corpus.jsonl").write_text(_lines(CORPUS))
    (made / "queries.jsonl").write_text(_lines(QUERIES))
    (made / "qrels.tsv").write_text(QRELS)
    return made


def _evaluate(folder: Path, mode: str, *options: str) -> list[dict[str, Any]]:
    said = io.StringIO()
    call_command(
        "evaluate", str(folder), "--json", "--mode", mode, *options, stdout=said, stderr=said
    )
    lines = said.getvalue().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.django_db(transaction=True)
def test_keyword_alone_prints_one_line_of_figures(folder: Path) -> None:
    (figures,) = _evaluate(folder, "keyword")
    assert list(figures) == KEYS
    assert (figures["set"], figures["mode"]) == ("tiny-en", "keyword")
    assert (figures["documents"], figures["queries"]) == (3, 3)
    assert (figures["recall@1"], figures["mrr@10"], figures["ndcg@10"]) == (1.0, 1.0, 1.0)
    assert figures["p95_ms"] >= figures["p50_ms"] > 0


@pytest.mark.django_db(transaction=True)
def test_a_title_alone_is_found_and_an_empty_document_is_left_out(folder: Path) -> None:
    odd: list[dict[str, Any]] = [
        {"id": "3", "title": "Ana plays chess", "text": "", "owner": "ana"},
        {"id": "4", "title": "", "text": " ", "owner": "ana"},
        {"id": "5", "title": "", "text": "a zebra", "owner": 7},
    ]
    (folder / "corpus.jsonl").write_text(_lines([*CORPUS, *odd]))
    more: list[dict[str, Any]] = [
        {"id": "q5", "text": "chess", "owner": "ana"},
        {"id": "q6", "text": "zebra", "owner": 7},
    ]
    (folder / "queries.jsonl").write_text(_lines([*QUERIES, *more]))
    (folder / "qrels.tsv").write_text(QRELS + "q5\t3\t1\nq6\t5\t1\n")
    (figures,) = _evaluate(folder, "keyword")
    assert (figures["documents"], figures["queries"], figures["recall@1"]) == (6, 5, 1.0)


@pytest.mark.django_db(transaction=True)
def test_all_modes_print_a_line_each_and_the_last_holds_every_one(
    folder: Path, tmp_path: Path
) -> None:
    lines = _evaluate(folder, "all", "--cache", str(tmp_path / "cache"))
    assert [line["mode"] for line in lines] == ["keyword", "vector", "hybrid"]
    assert list(lines[-1]) == [*KEYS, "modes"]
    assert list(lines[-1]["modes"]) == ["keyword", "vector", "hybrid"]
    assert all(0 <= lines[-1]["modes"][mode]["recall@20"] <= 1 for mode in lines[-1]["modes"])
    assert lines[2]["recall@5"] == 1.0
    assert (tmp_path / "cache" / "vectors.sqlite3").exists()
    again = _evaluate(folder, "hybrid", "--cache", str(tmp_path / "cache"))
    assert again[0]["ndcg@10"] == lines[2]["ndcg@10"]


@pytest.mark.django_db(transaction=True)
def test_the_users_own_memories_are_untouched(folder: Path) -> None:
    _evaluate(folder, "keyword")
    assert not Memory.objects.exists()
    assert not ApiKey.objects.filter(name="ana").exists()


def test_what_is_no_data_set_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not a data set"):
        call_command("evaluate", str(tmp_path))


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        (["a", "b"], (1.0, 1.0, 1.0)),
        (["x", "a"], (0.5, 0.5, 0.3869)),
        (["x"], (0.0, 0.0, 0.0)),
        ([], (0.0, 0.0, 0.0)),
    ],
)
def test_the_measures_are_those_of_trec(
    ranked: list[str], expected: tuple[float, float, float]
) -> None:
    gains = {"a": 1.0, "b": 1.0}
    found = (recall(ranked, gains, 2), reciprocal_rank(ranked, gains), ndcg(ranked, gains))
    assert found == pytest.approx(expected, abs=1e-4)


def test_percentiles_are_values_that_were_measured() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert (percentile(values, 0.5), percentile(values, 0.95), percentile([7.0], 0.5)) == (
        3.0,
        5.0,
        7.0,
    )
