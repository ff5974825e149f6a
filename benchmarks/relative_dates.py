"""What reading "last week" out of a question brings, on a set whose documents have dates.

``python -m benchmarks.relative_dates FOLDER [CACHE]``: no public set asks such questions, so each
question with dated evidence is asked as ``<question> (<words>)`` on the day for which the words
mean the day of the evidence. Beside it, with the same text: asked ten years later, when the words
mean a time without memories, so that only the words themselves are left.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import django

if TYPE_CHECKING:
    from memory.evaluation.dataset import Dataset

LATER: Final = {
    "": timedelta(days=7),
    "yesterday": timedelta(days=1),
    "last week": timedelta(days=7),
    "two weeks ago": timedelta(days=14),
    "last month": timedelta(days=30),
}
"""Words, and how long after the evidence they are said; without any there is nothing to read."""
NEVER: Final = timedelta(days=3650)
DEPTH: Final = 20


def main(folder: Path, cache: Path | None) -> None:
    """Load the set once, ask every question in each way, and print nDCG@10."""
    from memory.evaluation.dataset import read
    from memory.evaluation.run import load
    from memory.evaluation.scratch import scratch_database

    dataset = read(folder)
    with scratch_database():
        load(dataset, with_vectors=True, cache=cache, say=print)
        for words, later in LATER.items():
            read_out = list(_asked(dataset, words, later))
            told = list(_asked(dataset, words, NEVER))
            print(
                f"{words or '(no time named)'}: {len(told)} questions, nDCG@10 of the words alone "
                f"{_mean(told):.3f}, with the time read {_mean(read_out):.3f}"
            )


def _asked(dataset: Dataset, words: str, later: timedelta) -> Iterator[float]:
    from engine.retrieve import retrieve
    from engine.types import Mode
    from memory.evaluation.measures import ndcg
    from memory.models import Memory
    from memory.passage_reader import PassageReader
    from memory.principal import SYSTEM
    from memory.services import retrieval
    from memory.services.retrieval import RetrieveRequest

    for query in dataset.queries:
        wanted = dataset.gains[query.id]
        evidence = Memory.objects.filter(api_key__name=query.owner, key__in=wanted)
        moments = {row.occurred_at.date() for row in evidence if row.occurred_at}
        if len(moments) != 1:
            continue  # no one span could mean them all
        moment = datetime.combine(moments.pop(), datetime.min.time(), UTC) + later
        text = f"{query.text} ({words})" if words else query.text
        request = RetrieveRequest(text, Mode.HYBRID, DEPTH, 10**9, owner=query.owner)
        owners = retrieval.owners_of(SYSTEM, request)
        scope = retrieval.scope_of(request, owners, with_retention=False)
        reader = PassageReader()
        found = retrieve(
            retrieval.query_of(request),
            replace(scope, now_ms=int(moment.timestamp() * 1000)),
            retrieval.tiers(reader),
        )
        keys = [reader.memories[hit.passage.parent].key for hit in found.hits]
        yield ndcg(keys, wanted)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstudio.settings")
    django.setup()
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
