"""Vectors measured from the mean of their language: means, searches, older tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from engine.testing.contracts_vectors import EVERYONE, OF_ALICE, X, fill, ids, passage, vector
from engine.testing.vector_world import EAGER, SettledIndex, SqliteWorld
from engine.types import Matrix, Signature, Vector
from engine.vectors.centres import SHARE, Centres
from engine.vectors.in_process import InProcessIndex
from engine.vectors.state import Options

DIM = 16
SIGNATURE = Signature("local", "multilingual", "1", DIM)
OFFSETS = {"zh": 0, "latin": 1, "ja": 2}


def stored(count: int, language: str, *, first: int = 1, seed: int = 3) -> dict[int, Vector]:
    """Vectors of the same ``count`` things in a language: far from those of other languages."""
    things = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32) * 0.1
    things[:, list(OFFSETS.values())] = 0
    things[:, OFFSETS[language]] += 1
    return dict(enumerate(things, start=first))


@pytest.fixture(params=["scanned", "by graph"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteWorld]:
    scanned = request.param == "scanned"
    options = Options(centred=True) if scanned else Options(centred=True, tuning=EAGER)
    made = SqliteWorld(tmp_path / "index.db", SettledIndex, options)
    yield made
    made.close()


def put(
    world: SqliteWorld, store: InProcessIndex, language: str, vectors: dict[int, Vector]
) -> None:
    world.put(*(passage(key) for key in vectors))
    store.upsert(
        vectors, hashes=dict.fromkeys(vectors, "h"), languages=dict.fromkeys(vectors, language)
    )


def expected(
    query: Vector, means: Mapping[str, Vector], rows: Mapping[int, tuple[str, Vector]]
) -> list[int]:
    """Ids by the cosine between what is left after the means, best first."""

    def left(values: Vector, language: str) -> Matrix:
        unit = values.astype(np.float64) / np.linalg.norm(values)
        moved = unit - SHARE * means.get(language, np.zeros(DIM))
        scaled: Matrix = moved / np.linalg.norm(moved)
        return scaled

    wanted = left(query, "zh")
    scores = {
        key: float(left(values, language) @ wanted) for key, (language, values) in rows.items()
    }
    return sorted(rows, key=lambda key: (-scores[key], key))


def test_a_query_finds_the_same_thing_in_another_language(world: SqliteWorld) -> None:
    store = world.open(SIGNATURE)
    chinese, english = stored(80, "zh"), stored(80, "latin", first=101)
    put(world, store, "zh", chinese)
    put(world, store, "latin", english)
    for key in (1, 17, 80):
        raw = store.search(chinese[key], scope=OF_ALICE, limit=80)
        found = store.search(chinese[key], scope=OF_ALICE, limit=20, language="zh")
        assert ids(found)[0] == key
        assert key + 100 in ids(found)
        assert key + 100 not in ids(raw)


def test_without_a_language_scores_are_plain_cosines(world: SqliteWorld) -> None:
    store = world.open(SIGNATURE)
    put(world, store, "zh", stored(80, "zh"))
    put(world, store, "latin", stored(80, "latin", first=101))
    query = stored(80, "zh")[17]
    found = store.search(query, scope=OF_ALICE, limit=80)
    assert set(ids(found)) == set(range(1, 81))
    assert found[0].passage_id == 17
    assert found[0].score == pytest.approx(1.0)


def test_scores_are_those_of_the_formula_however_the_rows_are_kept(world: SqliteWorld) -> None:
    store = world.open(SIGNATURE)
    rows: dict[int, tuple[str, Vector]] = {}
    for turn, count in enumerate((70, 20, 60, 200)):
        for place, language in enumerate(("zh", "latin")):
            fresh = stored(count, language, first=1000 * turn + 500 * place + 1, seed=turn)
            put(world, store, language, fresh)
            rows |= {key: (language, values) for key, values in fresh.items()}
        query = stored(1, "zh", seed=90 + turn)[1]
        means = dict(world_means(world))
        found = store.search(query, scope=EVERYONE, limit=20, language="zh")
        assert ids(found) == expected(query, means, rows)[:20]


def world_means(world: SqliteWorld) -> dict[str, Vector]:
    """The means in use, as the database has them."""
    found = world.connect().execute("SELECT language, used FROM memory_vector_mean").fetchall()
    return {language: np.frombuffer(used, np.float32) for language, used in found if used}


def counts(world: SqliteWorld) -> dict[str, tuple[int, int]]:
    """Vectors counted and vectors the mean in use was taken over, by language."""
    found = world.connect().execute("SELECT language, count, used_count FROM memory_vector_mean")
    return {row[0]: (row[1], row[2]) for row in found.fetchall()}


def test_a_mean_needs_64_vectors_and_is_taken_again_when_they_have_doubled(
    world: SqliteWorld,
) -> None:
    store = world.open(SIGNATURE)
    sizes = [(63, 0), (1, 64), (63, 64), (1, 128), (64, 128)]
    first = 1
    for more, used in sizes:
        put(world, store, "zh", stored(more, "zh", first=first, seed=first))
        first += more
        assert counts(world) == {"zh": (first - 1, used)}
    every = world.connect().execute("SELECT vector FROM memory_vector WHERE passage_id <= 128")
    mean = np.mean([np.frombuffer(row[0], np.float32) for row in every.fetchall()], axis=0)
    assert world_means(world)["zh"] == pytest.approx(mean, abs=1e-6)


def test_replaced_and_deleted_vectors_are_no_longer_counted(world: SqliteWorld) -> None:
    store = world.open(SIGNATURE)
    put(world, store, "zh", stored(10, "zh"))
    put(world, store, "latin", stored(4, "latin"))
    assert counts(world) == {"latin": (4, 0), "zh": (6, 0)}
    store.delete([1, 10, 99])
    assert counts(world) == {"latin": (3, 0), "zh": (5, 0)}
    store.drop()
    assert counts(world) == {}


def test_a_rolled_back_write_is_not_counted(world: SqliteWorld) -> None:
    store = world.open(SIGNATURE)
    world.connect().execute("BEGIN IMMEDIATE")
    put(world, store, "zh", stored(64, "zh"))
    assert len(store.search(stored(1, "zh")[1], scope=EVERYONE, limit=5, language="zh")) == 5
    world.connect().execute("ROLLBACK")
    assert counts(world) == {}
    assert store.search(stored(1, "zh")[1], scope=EVERYONE, limit=5, language="zh") == []


def test_chinese_and_japanese_stand_in_for_one_another_before_packaged_means() -> None:
    own, packaged = vector(X), vector((0, 1, 0, 0))
    centres = Centres({"zh": own}, {"ja": packaged, "ko": packaged})
    assert centres.of("zh") is own
    assert centres.of("ja") is own
    assert centres.of("ko") is packaged
    assert Centres({}, {"ja": packaged}).of("zh") is packaged
    assert centres.of("latin") is None
    assert centres.of("") is None


def test_packaged_means_serve_a_store_with_few_vectors(tmp_path: Path) -> None:
    means = {name: np.eye(DIM, dtype=np.float32)[place] * 0.9 for name, place in OFFSETS.items()}
    options = Options(centred=True, means=means)
    world = SqliteWorld(tmp_path / "index.db", InProcessIndex, options)
    store = world.open(SIGNATURE)
    put(world, store, "zh", stored(5, "zh"))
    put(world, store, "latin", stored(5, "latin", first=101))
    found = store.search(stored(5, "zh")[3], scope=OF_ALICE, limit=2, language="zh")
    world.close()
    assert set(ids(found)) == {3, 103}


def test_a_table_from_before_languages_is_kept_and_can_be_given_them(world: SqliteWorld) -> None:
    world.connect().execute(
        "CREATE TABLE memory_vector (index_id INTEGER NOT NULL, passage_id INTEGER NOT NULL, "
        "text_hash TEXT NOT NULL, vector BLOB NOT NULL, UNIQUE (index_id, passage_id))"
    )
    both = {"zh": stored(70, "zh"), "latin": stored(70, "latin", first=101)}
    world.put(*(passage(key) for vectors in both.values() for key in vectors))
    world.connect().executemany(
        "INSERT INTO memory_vector VALUES (1, ?, 'h', ?)",
        [
            (key, (values / np.linalg.norm(values)).astype("<f4").tobytes())
            for vectors in both.values()
            for key, values in vectors.items()
        ],
    )
    store = world.open(SIGNATURE)
    query = both["zh"][5]
    before = store.search(query, scope=OF_ALICE, limit=2, language="zh")
    assert before[0].passage_id == 5
    assert ids(before) != [5, 105]
    assert len(store.unnamed(1000)) == 140
    for language, vectors in both.items():
        store.name_languages(dict.fromkeys(vectors, language))
    assert store.unnamed() == []
    assert set(ids(store.search(query, scope=OF_ALICE, limit=2, language="zh"))) == {5, 105}


def test_an_index_that_is_not_centred_ignores_languages(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path / "index.db")
    store = world.open(SIGNATURE)
    put(world, store, "zh", stored(80, "zh"))
    put(world, store, "latin", stored(80, "latin", first=101))
    query = stored(80, "zh")[17]
    plain = store.search(query, scope=OF_ALICE, limit=9)
    named = store.search(query, scope=OF_ALICE, limit=9, language="zh")
    world.close()
    assert plain == named
    assert max(ids(plain)) <= 80


def test_sums_over_a_table_that_was_dropped_are_forgotten(world: SqliteWorld) -> None:
    store = world.open(SIGNATURE)
    put(world, store, "zh", stored(64, "zh"))
    world.connect().execute("DROP TABLE memory_vector")
    with pytest.raises(sqlite3.OperationalError):
        store.count()
    store.ensure()
    assert (store.count(), counts(world)) == (0, {})


def test_vectors_without_a_language_are_searched_as_they_are(world: SqliteWorld) -> None:
    store = world.open(Signature("local", "fake", "1", 4))
    world.put(passage(1), passage(2))
    fill(store, {1: X, 2: (0, 1, 0, 0)})
    found = store.search(vector(X), scope=OF_ALICE, limit=1, language="zh")
    assert found[0].passage_id == 1
    assert found[0].score == pytest.approx(1.0)
