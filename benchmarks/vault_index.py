"""A full vault of mixed text in memory: building its index, searching it, letting go of it.

python -m benchmarks.vault_index --chunks 10000 --dims 384
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from engine.rerank.light import LightReranker
from engine.testing.fakes import FakeEmbedding
from engine.text.tokenize import analyzer
from engine.types import Match, Matrix, Mode, Purpose, Signature
from engine.vault import capacity, embedding
from engine.vault.index import Document, VaultIndex, VectorCache
from engine.vault.keeper import Keeper, Version
from engine.vault.search import VaultQuery, search

SENTENCES = (
    "The refund policy allows returns within seven days of delivery.",
    "所有订单在七天内可以申请退款，运费由买家承担。",
    "返品は商品到着後七日以内に限り受け付けます。",
    "Rate limits and retries follow the backoff of the service.",
    "增值税发票会在发货后三天内寄出。",
    "会議では新しい検索エンジンの設計について話し合いました。",
    "Each answer cites the passages that it is drawn from 🚀.",
    "数据库的备份每天凌晨两点自动运行一次。",
    "写真の整理は週末にまとめて行うことにしています。",
    "The vault locks itself after fifteen minutes without use.",
)
QUERIES = ("refund policy", "退款 运费", "返品 到着後", "backup 数据库", "検索エンジン 設計")
ROUNDS = 20
PLANS = (
    ("keyword", Mode.KEYWORD, Match.ANY),
    ("hybrid", Mode.HYBRID, Match.ANY),
    ("keyword, all", Mode.KEYWORD, Match.ALL),
    ("keyword, phrase", Mode.KEYWORD, Match.PHRASE),
)


class RandomVectors(FakeEmbedding):
    """Unit vectors that cost nothing: the time of a model is measured elsewhere."""

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Random rows."""
        rows = np.random.default_rng(len(texts)).normal(size=(len(texts), self.signature.dim))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows.astype(np.float32)

    @property
    def signature(self) -> Signature:
        return Signature("local", "random", "1", self._signature.dim)


def resident_mb() -> float:
    """Memory of this process."""
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * 4096 / 2**20


def documents(count: int) -> list[Document]:
    """Documents of one full chunk each, of mixed languages."""
    chance = random.Random(11)  # noqa: S311 - the same each time
    made: list[Document] = []
    for number in range(count):
        body = ""
        while len(body) < 600:
            word = f"{chance.randrange(10**6):x}"
            body += f"{chance.choice(SENTENCES)} {word} "
        made.append(Document(f"{number:06}", 1, "card", f"Note {number}", body[:700]))
    return made


def timed(what: Callable[[], object]) -> list[float]:
    """Milliseconds of each round."""
    took: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        what()
        took.append((time.perf_counter() - start) * 1000)
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=capacity.MAX_CHUNKS)
    parser.add_argument("--dims", type=int, default=384)
    asked = parser.parse_args()
    VaultIndex([Document("w", 1, "card", "t", SENTENCES[1])], VectorCache())
    given = documents(asked.chunks)
    keeper, version = Keeper(), Version(1, 1, 1)
    gc.collect()
    before = resident_mb()
    start = time.perf_counter()
    index, _slot = keeper.index("v", version, lambda vectors: VaultIndex(given, vectors))
    print(f"built {len(index.chunks)} chunks in {time.perf_counter() - start:.1f} s")
    source = RandomVectors(dim=asked.dims)
    embedding.fill(index, source, check=lambda: None)
    light = LightReranker(analyzer("seed"))
    for name, mode, match in PLANS:
        took: list[float] = []
        for text in QUERIES:
            query = VaultQuery(text, mode, match)
            embed = partial(embedding.query_vector, source, text)
            took += timed(partial(search, query, index, embed=embed, reranker=light))
        print(f"{name}: p50 {statistics.median(took):.1f} ms, max {max(took):.1f} ms")
    full = resident_mb()
    del index, _slot
    keeper.lock("v")
    gc.collect()
    print(
        f"memory: {full - before:.0f} MB for the index, {resident_mb() - before:.0f} MB after lock"
    )


if __name__ == "__main__":
    main()
