"""What must hold at the end: everything once, indexed and found; no job lost, no effect twice."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import psycopg

from benchmarks.chaos.load import Caller, Clients, Tally, key, records, text, word

SHOWN: Final = 5


def everything(url: str, clients: Clients, webs: list[str], files: int) -> dict[str, Any]:
    """Every check; what is wrong stands in lists that are empty when all is well."""
    with psycopg.connect(url, autocommit=True) as database:
        rows = _rows(database, clients, files)
        report = {**rows, **_index(database), **_jobs(database)}
    report["not_found_by_word"] = _searched(clients, webs)
    report["not_found_by_meaning"] = _by_meaning(clients, webs)
    return report


def is_good(report: dict[str, Any]) -> bool:
    """Whether nothing is wrong."""
    return not any(report[name] for name in WRONG)


WRONG: Final = (
    "lost",
    "duplicates",
    "changed",
    "written_twice",
    "marks_left",
    "without_vector",
    "open_jobs",
    "failed_jobs",
    "not_found_by_word",
    "not_found_by_meaning",
)


def waiting(url: str) -> int:
    """Marks and open jobs that are left."""
    with psycopg.connect(url, autocommit=True) as database:
        marks = _number(database, "SELECT count(*) FROM memory_vectormark")
        return marks + _number(database, _OPEN)


_OPEN: Final = "SELECT count(*) FROM memory_job WHERE state IN ('queued', 'running')"
_FAILED: Final = "SELECT count(*) FROM memory_job WHERE state IN ('failed', 'cancelled')"


def _rows(database: psycopg.Connection[Any], clients: Clients, files: int) -> dict[str, Any]:
    found = database.execute(
        "SELECT k.name, m.key, m.content, m.revision FROM memory_memory m"
        " JOIN memory_apikey k ON k.id = m.api_key_id"
    ).fetchall()
    expected = {
        (f"client {client}", key(place)): text(place)
        for client in range(len(clients.secrets))
        for place in clients.places(client)
    } | {
        ("Default", record["key"]): record["content"]
        for number in range(files)
        for record in records(number)
    }
    kept: dict[tuple[str, str], str] = {}
    duplicates, twice = [], []
    for name, its_key, content, revision in found:
        if (name, its_key) in kept:
            duplicates.append(its_key)
        if revision != 1:
            twice.append(its_key)
        kept[name, its_key] = content
    return {
        "stored": len(found),
        "lost": _some(its_key for name, its_key in expected.keys() - kept.keys()),
        "duplicates": _some(duplicates),
        "changed": _some(row[1] for row in kept if kept[row] != expected.get(row)),
        "written_twice": _some(twice),
    }


def _index(database: psycopg.Connection[Any]) -> dict[str, Any]:
    without = (
        "SELECT count(*) FROM memory_passage p WHERE NOT EXISTS (SELECT 1 FROM memory_vector v"
        " JOIN memory_vectorindex i ON i.id = v.index_id AND i.state = 'active'"
        " WHERE v.passage_id = p.id)"
    )
    return {
        "passages": _number(database, "SELECT count(*) FROM memory_passage"),
        "marks_left": _number(database, "SELECT count(*) FROM memory_vectormark"),
        "without_vector": _number(database, without),
    }


def _jobs(database: psycopg.Connection[Any]) -> dict[str, Any]:
    states = database.execute("SELECT kind, state, count(*) FROM memory_job GROUP BY 1, 2")
    counted = {f"{kind} {state}": number for kind, state, number in states.fetchall()}
    lost = "SELECT count(*) FROM memory_job WHERE attempts > 1"
    return {
        "jobs": counted,
        "jobs_taken_over": _number(database, lost),
        "open_jobs": _number(database, _OPEN),
        "failed_jobs": _number(database, _FAILED),
    }


def _searched(clients: Clients, webs: list[str]) -> list[str]:
    """Keys of memories that a keyword search over HTTP does not bring first, and alone."""

    def missing(client: int) -> list[str]:
        with Caller(webs, clients.secrets[client], Tally(), first=client) as caller:
            return [
                key(place)
                for place in clients.places(client)
                if _keys(caller, word(place), "exact") != [key(place)]
            ]

    with ThreadPoolExecutor(len(clients.secrets)) as pool:
        return _some(
            name for names in pool.map(missing, range(len(clients.secrets))) for name in names
        )


def _by_meaning(clients: Clients, webs: list[str]) -> list[str]:
    """Every hundredth text, asked for by itself through the vectors alone."""
    with Caller(webs, clients.secrets[0], Tally()) as caller:
        return _some(
            key(place)
            for place in list(clients.places(0))[::100]
            if key(place) not in _keys(caller, text(place), "semantic")
        )


def _keys(caller: Caller, query: str, strategy: str) -> list[str]:
    body: dict[str, object] = {"query": query, "strategy": strategy, "limit": 20}
    answer = caller.post("/api/memory/retrieve-preview", body).json()
    return [hit["key"] for hit in answer["memories"]]


def _number(database: psycopg.Connection[Any], query: str) -> int:
    row = database.execute(query).fetchone()
    return int(row[0]) if row else 0


def _some(found: Iterable[str]) -> list[str]:
    """The first few of them, and how many more there are."""
    names = sorted(found)
    more = len(names) - SHOWN
    return [*names[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
