"""Every engine of one size, filled and ready to be asked by the number of a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.speed import raw
from benchmarks.speed.data import Data
from benchmarks.speed.product import LIMIT, Product, client, hybrid, scope_of
from benchmarks.speed.progress import say
from benchmarks.speed.text import BIGGEST, SMALL, Note
from benchmarks.speed.timing import Engine, Took, timed
from engine.text.tokenize import analyzer
from engine.types import Vector

FEW = 2_000
"""Vectors stored in one transaction of sqlite-vec."""


SLICE = 500
"""Memories imported, and then cut and put into FTS5, at a time: a batch of the import service."""


@dataclass(slots=True)
class Built:
    """The product and its rivals on the same rows.

    ``imports`` tells what each slice took in the import service, ``analyses`` what cutting its
    texts alone takes, and ``stores`` what putting the terms into raw FTS5 does.
    """

    data: Data
    product: Product
    folder: Path
    fts5: raw.RawFts5
    imports: list[Took] = field(default_factory=list)
    analyses: list[Took] = field(default_factory=list)
    stores: list[Took] = field(default_factory=list)
    hnsw: raw.RawHnsw | None = None
    vec0: raw.RawVec0 | None = None
    settle_s: float = 0.0
    absent: dict[str, str] = field(default_factory=dict)


def build(data: Data, folder: Path) -> Built:
    """Fill everything from the same slices, so that all meet the same noise of the machine."""
    built = Built(data, Product.fresh(data.known), folder, raw.RawFts5(folder))
    analyzer("search").document_terms("warm 预热 準備")
    for notes in data.blocks():
        first, count = notes[0].number, len(notes)
        for start in range(0, count, SLICE):
            _slice(built, notes[start : start + SLICE])
        built.product.embed(first, data.vectors[first : first + count])
        say(f"{first + count:,} of {data.plan.passages:,} memories")
    scope = scope_of(BIGGEST)
    built.product.by_keyword(data.questions[0], scope, LIMIT)
    built.product.by_vector(data.known[data.questions[0]], scope, LIMIT)
    say("waiting until the indexes are built")
    built.settle_s = built.product.settle()
    _vec0(built)
    _hnsw(built)
    return built


def _slice(built: Built, notes: Sequence[Note]) -> None:
    cut = analyzer("search").document_terms
    rows: list[tuple[int, list[str]]] = []

    def analyse() -> None:
        rows.extend(
            (n.number, cut(f"{n.record['key']} {n.record['content']} {n.slots['n2']}"))
            for n in notes
        )

    built.imports.append(timed(lambda: built.product.store(notes)))
    built.analyses.append(timed(analyse))
    built.stores.append(timed(lambda: built.fts5.add(rows)))


def _vec0(built: Built) -> None:
    try:
        built.vec0 = raw.RawVec0(built.folder)
    except (ImportError, OSError) as error:
        built.absent["sqlite_vec"] = str(error)
        return
    vectors = built.data.vectors
    for start in range(0, len(vectors), FEW):
        built.vec0.add(start, vectors[start : start + FEW])


def _hnsw(built: Built) -> None:
    if built.data.plan.passages > built.data.plan.hnsw_up_to:
        built.absent["hnsw"] = f"not built above {built.data.plan.hnsw_up_to:,} passages"
        return
    try:
        built.hnsw = raw.RawHnsw(built.data.vectors)
    except ImportError as error:
        built.absent["hnsw"] = str(error)


def engines(built: Built) -> dict[str, Engine]:
    """Ways to ask, by name."""
    product, questions = built.product, built.data.questions
    vectors = [built.data.known[text] for text in questions]
    scope = scope_of(BIGGEST)
    found = {
        "keyword": Engine(lambda i: product.by_keyword(questions[i], scope, LIMIT)),
        "vector": Engine(lambda i: product.by_vector(vectors[i], scope, LIMIT)),
        "hybrid": Engine(lambda i: hybrid(questions[i], owner=BIGGEST)),
    }
    further = {} if built.data.plan.is_brief else _further(built)
    return found | further | _raw(built, vectors)


def _further(built: Built) -> dict[str, Engine]:
    """As a client whose uses are counted, and for a small owner beside the big one."""
    questions, small = built.data.questions, built.data.small
    principal = client()

    def as_client(i: int) -> object:
        return hybrid(questions[i], owner=None, principal=principal, purpose="client")

    found = {"client": Engine(as_client)}
    if small:
        found["small_owner"] = Engine(lambda i: hybrid(small[i % len(small)], owner=SMALL))
    return found


def _raw(built: Built, vectors: list[Vector]) -> dict[str, Engine]:
    terms = [built.product.terms(text) for text in built.data.questions]
    cut = analyzer("search").document_terms
    words = [list(dict.fromkeys(cut(text))) for text in built.data.questions]
    scan, hnsw, vec0 = raw.RawScan(built.data.vectors), built.hnsw, built.vec0
    found: dict[str, Engine] = {
        "fts5": Engine(lambda i: built.fts5.search(terms[i], LIMIT)),
        "fts5_every_word": Engine(lambda i: built.fts5.search(words[i], LIMIT)),
        "numpy": Engine(lambda i: scan.search(vectors[i], LIMIT), one_thread=True),
    }
    if vec0 is not None:
        found["sqlite_vec"] = Engine(lambda i: vec0.search(vectors[i], LIMIT))
    if hnsw is not None:
        found["hnsw"] = Engine(lambda i: hnsw.search(vectors[i], LIMIT))
    return found


def recalls(built: Built) -> dict[str, float]:
    """Share of the exact nearest ``LIMIT`` that the product finds, and bare HNSW among all rows."""
    data, product, scope = built.data, built.product, scope_of(BIGGEST)
    owned = data.vectors[: data.plan.biggest]
    ours: list[float] = []
    hnsw: list[float] = []
    for text in data.questions:
        vector = data.known[text]
        found = product.by_vector(vector, scope, LIMIT)
        exact = raw.nearest(owned @ vector, LIMIT)
        ours.append(_share(product.numbers(c.passage_id for c in found), exact))
        if built.hnsw is not None:
            exact = raw.nearest(data.vectors @ vector, LIMIT)
            hnsw.append(_share(built.hnsw.search(vector, LIMIT), exact))
    result = {"recall@20": float(np.mean(ours))}
    return result | ({"hnsw_recall@20": float(np.mean(hnsw))} if hnsw else {})


def _share(found: raw.Ids, exact: raw.Ids) -> float:
    return len(set(found) & set(exact)) / len(exact)
