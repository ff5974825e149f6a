"""The cache of query vectors. Numbers are ids of the original's described behaviours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from engine.embed.cache import CachedSource
from engine.embed.lru import CacheStats, LruCache
from engine.errors import EmbeddingFailed
from engine.testing.contracts_embed import EmbeddingSourceContract
from engine.testing.fakes import FailingEmbedding, FakeEmbedding
from engine.types import Matrix, Purpose, Signature


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TestFakeEmbedding(EmbeddingSourceContract):
    @pytest.fixture
    def source(self) -> FakeEmbedding:
        return FakeEmbedding()


class TestCachedSource(EmbeddingSourceContract):
    @pytest.fixture
    def source(self) -> CachedSource:
        return CachedSource(FakeEmbedding())


def test_store_cache_01_hits_misses_and_size_are_counted() -> None:
    cache: LruCache[str, int] = LruCache(10, 60.0)
    cache.put("a", 1)
    assert (cache.get("a"), cache.get("b")) == (1, None)
    assert cache.stats == CacheStats(hits=1, misses=1, size=1)


def test_store_cache_02_an_old_entry_is_forgotten() -> None:
    clock = Clock()
    cache: LruCache[str, int] = LruCache(10, 0.05, clock)
    cache.put("a", 1)
    clock.now = 0.06
    assert cache.get("a") is None
    assert cache.stats == CacheStats(hits=0, misses=1, size=0)


def test_store_cache_03_the_entry_read_longest_ago_goes_first() -> None:
    cache: LruCache[str, int] = LruCache(2, 60.0)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_embedding_cache_01_an_unknown_text_is_embedded() -> None:
    source = FakeEmbedding()
    cached = CachedSource(source)
    rows = cached.embed(["tea"], purpose=Purpose.QUERY)
    assert np.array_equal(rows, source.embed(["tea"], purpose=Purpose.QUERY))
    assert cached.stats == CacheStats(hits=0, misses=1, size=1)


def test_embedding_cache_02_a_known_text_is_not_embedded_again() -> None:
    source = FakeEmbedding()
    cached = CachedSource(source)
    for _ in range(3):
        cached.embed(["tea"], purpose=Purpose.QUERY)
    assert cached.stats == CacheStats(hits=2, misses=1, size=1)
    assert source.calls == [(Purpose.QUERY, ("tea",))]


class SlowEmbedding(FakeEmbedding):
    """Embeds when the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.gate = Event(), Event()

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        self.begun.set()
        self.gate.wait(30)
        return super().embed(texts, purpose=purpose)


def test_a_text_that_another_thread_is_embedding_is_waited_for() -> None:
    source = SlowEmbedding()
    cached = CachedSource(source)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(cached.embed, ["tea"], purpose=Purpose.QUERY)
        assert source.begun.wait(30)
        second = threads.submit(cached.embed, ["tea", "milk"], purpose=Purpose.QUERY)
        source.gate.set()
        assert np.array_equal(first.result(30)[0], second.result(30)[0])
    asked = [text for _purpose, texts in source.calls for text in texts]
    assert sorted(asked) == ["milk", "tea"]


def test_who_waits_for_a_text_hears_of_its_failure_and_the_next_one_tries_again() -> None:
    source = FailingEmbedding()
    cached = CachedSource(source)
    for _ in range(2):
        with pytest.raises(EmbeddingFailed):
            cached.embed(["tea"], purpose=Purpose.QUERY)


def test_embedding_cache_04_a_read_keeps_an_entry() -> None:
    source = FakeEmbedding()
    cached = CachedSource(source, max_entries=3)
    for text in ("a", "b", "c", "a", "d", "a"):
        cached.embed([text], purpose=Purpose.QUERY)
    assert cached.stats == CacheStats(hits=2, misses=4, size=3)


def test_embedding_cache_05_clearing_forgets_the_counts_too() -> None:
    cached = CachedSource(FakeEmbedding())
    cached.embed(["tea", "tea"], purpose=Purpose.QUERY)
    cached.clear()
    assert cached.stats == CacheStats(hits=0, misses=0, size=0)


def test_only_the_missing_texts_of_a_batch_are_embedded() -> None:
    source = FakeEmbedding()
    cached = CachedSource(source)
    cached.embed(["b"], purpose=Purpose.QUERY)
    rows = cached.embed(["a", "b", "c"], purpose=Purpose.QUERY)
    assert source.calls[1] == (Purpose.QUERY, ("a", "c"))
    assert np.array_equal(rows, source.embed(["a", "b", "c"], purpose=Purpose.QUERY))


def test_documents_pass_through() -> None:
    source = FakeEmbedding()
    cached = CachedSource(source)
    for _ in range(2):
        cached.embed(["tea"], purpose=Purpose.DOCUMENT)
    assert len(source.calls) == 2
    assert cached.stats == CacheStats(hits=0, misses=0, size=0)


def test_a_caller_cannot_spoil_what_is_remembered() -> None:
    cached = CachedSource(FakeEmbedding())
    first = cached.embed(["tea"], purpose=Purpose.QUERY)
    wanted = first.copy()
    first[:] = 0
    again = cached.embed(["tea"], purpose=Purpose.QUERY)
    again[:] = 0
    assert np.array_equal(cached.embed(["tea"], purpose=Purpose.QUERY), wanted)


def test_a_failure_is_not_remembered() -> None:
    source = FailingEmbedding("rate_limited")
    cached = CachedSource(source)
    with pytest.raises(EmbeddingFailed) as caught:
        cached.embed(["tea"], purpose=Purpose.QUERY)
    assert caught.value.code == "rate_limited"
    assert not cached.health().available
    source.is_failing = False
    assert cached.embed(["tea"], purpose=Purpose.QUERY).shape == (1, 64)


class Unsigned(FakeEmbedding):
    """A source that does not know its dimension yet."""

    @property
    def signature(self) -> Signature:
        raise EmbeddingFailed("not known yet", code="unknown")


def test_without_a_signature_nothing_is_remembered() -> None:
    cached = CachedSource(Unsigned())
    cached.embed(["tea"], purpose=Purpose.QUERY)
    assert cached.stats.size == 0


def test_texts_that_share_words_are_near_in_the_fake() -> None:
    texts = [
        "the cat drinks milk",
        "cats drink milk",
        "stocks fell sharply today",
        "猫在喝牛奶",
        "小猫喝牛奶",
    ]
    rows = FakeEmbedding().embed(texts, purpose=Purpose.DOCUMENT)
    near = rows @ rows.T
    assert near[0, 1] > near[0, 2] + 0.2
    assert near[3, 4] > near[3, 2] + 0.2


class Shared:
    """A second level in a dict."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {key: self.held[key] for key in keys if key in self.held}

    def put(self, vectors: Mapping[str, bytes]) -> None:
        self.held.update(vectors)


def test_what_another_process_has_embedded_is_not_embedded_again() -> None:
    shared, theirs, ours = Shared(), FakeEmbedding(), FakeEmbedding()
    first = CachedSource(theirs, shared=shared).embed(["tea", "cup"], purpose=Purpose.QUERY)
    here = CachedSource(ours, shared=shared)
    again = here.embed(["cup", "pot", "tea"], purpose=Purpose.QUERY)
    assert [texts for _purpose, texts in ours.calls] == [("pot",)]
    assert np.array_equal(again[[2, 0]], first)
    shared.held.clear()
    here.embed(["cup", "tea"], purpose=Purpose.QUERY)
    assert len(ours.calls) == 1, "what came from there is kept here"


def test_another_model_or_purpose_shares_nothing() -> None:
    shared = Shared()
    CachedSource(FakeEmbedding(), shared=shared).embed(["tea"], purpose=Purpose.QUERY)
    other = FakeEmbedding(revision="2")
    CachedSource(other, shared=shared).embed(["tea"], purpose=Purpose.QUERY)
    CachedSource(other, shared=shared).embed(["tea"], purpose=Purpose.DOCUMENT)
    assert len(other.calls) == 2
    assert len(shared.held) == 2


def test_what_is_no_vector_of_the_model_is_embedded_again() -> None:
    shared, source = Shared(), FakeEmbedding()
    CachedSource(source, shared=shared).embed(["tea"], purpose=Purpose.QUERY)
    (key,) = shared.held
    not_finite = np.full(source.signature.dim, np.nan, np.float32).tobytes()
    for broken in (b"", b"1234", not_finite):
        shared.held[key] = broken
        vector = CachedSource(source, shared=shared).embed(["tea"], purpose=Purpose.QUERY)[0]
        assert np.isfinite(vector).all()
    assert len(source.calls) == 4
