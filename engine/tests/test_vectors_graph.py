"""The graph library: import order, recall against exact search, growth, and doing without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import engine
from engine.types import Matrix
from engine.vectors.graph import Graph, add, effort, grown, new_index, read
from engine.vectors.segment import Segment, blank

ROOT = Path(engine.__file__).parents[1]
DIM, ROWS, LIMIT = 48, 3000, 20

USEARCH_COMES_AFTER_ONNXRUNTIME = """
import sys

class Spy:
    def find_spec(self, name, path=None, target=None):
        if name == "usearch":
            print("onnxruntime" in sys.modules)
        return None

sys.meta_path.insert(0, Spy())
from engine import native
assert "usearch" not in sys.modules
assert native.graphs().Index
"""
WITHOUT_LIBRARIES = """
import sys
from pathlib import Path
sys.modules["usearch"] = sys.modules["numkong"] = None
import numpy as np
from engine.testing.contracts_vectors import OF_ALICE, ids, passage
from engine.testing.vector_world import EAGER, SettledIndex, SqliteWorld
from engine.vectors.state import Options

world = SqliteWorld(Path(sys.argv[1]), SettledIndex, Options(tuning=EAGER))
store = world.open()
drawn = np.random.default_rng(1).standard_normal((500, 4)).astype(np.float32)
world.put(*(passage(key) for key in range(500)))
store.upsert(dict(enumerate(drawn)), hashes=dict.fromkeys(range(500), "h"))
wanted = np.argsort(-(drawn @ drawn[7]) / np.linalg.norm(drawn, axis=1))[:9]
assert ids(store.search(drawn[7], scope=OF_ALICE, limit=9)) == wanted.tolist()
assert store.health().detail["graphs"] == 0
world.close()
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rows_of(matrix: Matrix, first: int = 0) -> Segment:
    """Rows with serials from ``first`` on; what a graph does not look at stays blank."""
    rows = blank(len(matrix), DIM)
    rows.matrix[:] = matrix
    rows.serial[:] = np.arange(first, first + len(matrix))
    return rows


def clustered(count: int, seed: int) -> Matrix:
    """Unit vectors around forty centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((40, DIM))
    drawn = centres[rng.integers(40, size=count)] + 0.7 * rng.standard_normal((count, DIM))
    scaled: Matrix = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def recall(graph: Graph, matrix: Matrix) -> float:
    """Share of the exact best that a graph proposes, over fifty queries."""
    found = 0
    for query in clustered(50, seed=9):
        best = np.argsort(-(matrix @ query))[:LIMIT]
        proposed, _ = graph.nearest(query, "", count=3 * LIMIT, wanted=LIMIT)
        found += np.intersect1d(best, proposed).size
    return found / (50 * LIMIT)


def never() -> bool:
    return False


def test_usearch_is_imported_after_onnxruntime_and_by_native_alone() -> None:
    assert run(USEARCH_COMES_AFTER_ONNXRUNTIME).split() == ["True"]
    importers = [
        path.name
        for path in (ROOT / "engine").rglob("*.py")
        if "tests" not in path.parts and "import usearch" in path.read_text(encoding="utf-8")
    ]
    assert importers == ["native.py"]


def test_without_the_libraries_everything_is_scanned(tmp_path: Path) -> None:
    assert run(WITHOUT_LIBRARIES, str(tmp_path / "index.db")) == ""


def test_a_graph_proposes_the_best_after_growth_and_out_of_its_file(tmp_path: Path) -> None:
    matrix = clustered(ROWS, seed=2)
    index = new_index(DIM)
    add(index, rows_of(matrix[:2000]), [], None, never)
    first = Graph(index, None, 2000)
    assert recall(first, matrix[:2000]) >= 0.99
    first.save(tmp_path / "graph")
    mapped = Graph(read(tmp_path / "graph", DIM), None, 2000)
    more = grown(mapped)
    add(more, rows_of(matrix[2000:], first=2000), [], None, never)
    assert recall(Graph(more, None, ROWS), matrix) >= 0.99
    assert (len(mapped), recall(mapped, matrix[:2000])) == (2000, recall(first, matrix[:2000]))


def test_larger_graphs_are_searched_with_more_effort() -> None:
    sizes = (1, 1000, 20_000, 100_000, 1_000_000, 100_000_000)
    assert [effort(rows) for rows in sizes] == [256, 256, 256, 512, 2038, 2048]
    assert Graph(new_index(DIM), None, 0).index.expansion_search == 256


def test_building_ends_soon_when_stopped() -> None:
    index = new_index(DIM)
    answers = iter([False, True])
    add(index, rows_of(clustered(ROWS, seed=2)), [], None, lambda: next(answers))
    assert 0 < len(index) < ROWS
