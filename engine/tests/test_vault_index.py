from __future__ import annotations

import random
import sqlite3

import numpy as np
import pytest

from engine.errors import Cancelled, EmbeddingFailed, InvalidQuery
from engine.keyword.fts5 import Fts5Index
from engine.testing.fakes import FailingEmbedding, FakeEmbedding
from engine.text.tokenize import analyzer
from engine.types import Match, Passage, PassageKind, Scope, Signature
from engine.vault import embedding
from engine.vault.errors import VaultError
from engine.vault.index import Document, VaultIndex, VectorCache

WORDS = [
    "退款",
    "政策",
    "refund",
    "days",
    "すもも",
    "発票",
    "API",
    "発送",
    "rocket",
    "🚀",
    "Node.js",
]
WORDS += ["ひらがな", "7", "天", "retry"]
DOCUMENTS = [
    Document(
        "d1", 3, "card", "退款政策", "所有订单7天内可退款。Refunds in 7 days.", "policy finance"
    ),
    Document("d2", 1, "memory", "Shipping", "We ship worldwide. 发货时间为3天。", "logistics"),
    Document("d3", 1, "card", "发票", "开具增值税发票 invoice", "finance 退款"),
    Document("d4", 1, "memory", "Notes", "Random notes about rockets 🚀", "misc"),
]


def built(documents: list[Document] = DOCUMENTS) -> VaultIndex:
    return VaultIndex(documents, VectorCache())


def assets(index: VaultIndex, query: str, **options: object) -> list[str]:
    found = index.keyword(query, limit=10, **options)  # type: ignore[arg-type]
    return [index.chunk(candidate.passage_id).asset for candidate in found]


def test_scores_are_those_of_fts5() -> None:
    chance = random.Random(7)  # noqa: S311 - the same each time
    documents = [
        Document(
            f"{number:04}",
            1,
            "card",
            " ".join(chance.choices(WORDS, k=chance.randint(0, 3))),
            " ".join(chance.choices(WORDS, k=chance.randint(1, 400))) + ".",
            " ".join(chance.choices(WORDS, k=chance.randint(0, 2))),
        )
        for number in range(60)
    ]
    index = built(documents)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    fts = Fts5Index(lambda: connection, analyzer=analyzer("seed"), owns_scope=True)
    fts.ensure()
    fts.upsert([chunk.passage for chunk in index.chunks])
    scope = Scope(now_ms=0, owners=frozenset({0}))
    for query in ("退款", "refund days", "Node.js すもも", "🚀 7", "ひ", "missing", "API retry 天"):
        for match in Match:
            want = fts.search(query, scope=scope, limit=100, match=match)
            got = index.keyword(query, limit=100, match=match)
            assert [c.passage_id for c in got] == [c.passage_id for c in want], (query, match)
            assert [c.score for c in got] == pytest.approx([c.score for c in want], abs=1e-5)
    connection.close()


def test_a_word_in_the_title_outranks_one_in_metadata_or_body() -> None:
    assert assets(built(), "退款") == ["d1", "d3"]
    assert assets(built(), "发票") == ["d3"]


def test_match_modes_and_kinds_narrow_a_search() -> None:
    index = built()
    assert assets(index, "退款 finance") == ["d3", "d1"]
    assert assets(index, "退款 policy", match=Match.ALL) == ["d1"]
    assert assets(index, "增值税发票", match=Match.PHRASE) == ["d3"]
    assert assets(index, "税发", match=Match.PHRASE) == ["d3"]
    assert assets(index, "notes ship", cards_only=True) == []
    assert assets(index, "天", cards_only=True) == []


@pytest.mark.parametrize(
    "query", ['"', "NEAR(a b)", "a* OR b", "-退款", "title:x", "(", "^a", "a:b"]
)
def test_nothing_typed_is_an_operator(query: str) -> None:
    for match in Match:
        try:
            assert isinstance(built().keyword(query, limit=5, match=match), list)
        except InvalidQuery as refused:
            assert refused.code == "empty_query"


def test_chunks_know_their_bytes_their_revision_and_their_hash() -> None:
    body = "序。" + "長い文章です😀。" * 120
    index = built([Document("d", 7, "card", "題", body)])
    assert len(index.chunks) > 1
    for chunk in index.chunks:
        assert body.encode()[chunk.byte_start : chunk.byte_end].decode() == chunk.passage.body
        assert chunk.revision == 7
        assert chunk.chunk_hash.startswith("sha256:")


def test_hashes_stay_when_something_else_changes() -> None:
    body = "\n\n".join(f"Paragraph {number}. " + "word " * 100 for number in range(8))
    first = built([Document("d", 1, "card", "t", body)])
    again = built([Document("d", 2, "card", "t", body + "\n\nOne more."), *DOCUMENTS])
    kept = {chunk.chunk_hash for chunk in first.chunks[:-1]}
    assert kept <= {chunk.chunk_hash for chunk in again.chunks}


@pytest.mark.parametrize(
    "documents",
    [
        [Document("d", 1, "card", "t", "x" * (1 << 24))],
        [Document("d", 1, "card", "t" * 10, "字" * (768 + 640 * 10_000))],
    ],
)
def test_a_vault_that_is_too_large_is_refused(documents: list[Document]) -> None:
    with pytest.raises(VaultError) as refused:
        built(documents)
    assert refused.value.code == "index_too_large"


def test_what_is_private_never_gets_into_an_index() -> None:
    for kind in ("private", "credential", "file"):
        with pytest.raises(ValueError, match="only memories and cards"):
            built([Document("d", 1, kind, "t", "secret")])


def test_building_stops_when_it_is_told_to() -> None:
    def check() -> None:
        raise Cancelled("locked")

    with pytest.raises(Cancelled):
        VaultIndex(DOCUMENTS, VectorCache(), check=check)


def test_missing_vectors_are_made_once_and_reused_by_a_later_index() -> None:
    vectors, source = VectorCache(), FakeEmbedding()
    index = VaultIndex(DOCUMENTS, vectors)
    assert embedding.fill(index, source, check=lambda: None) == 4
    assert (embedding.fill(index, source, check=lambda: None), index.embedded) == (0, 4)
    changed = [*DOCUMENTS[:3], Document("d4", 2, "memory", "Notes", "Other notes")]
    again = VaultIndex(changed, vectors)
    assert again.embedded == 3
    assert embedding.fill(again, source, check=lambda: None) == 1
    assert len(source.calls) == 2


def test_another_model_starts_from_nothing() -> None:
    index = built()
    embedding.fill(index, FakeEmbedding(), check=lambda: None)
    other = FakeEmbedding(model="other", dim=32)
    assert embedding.fill(index, other, check=lambda: None) == 4
    assert index.vectors.signature == other.signature


def test_nearest_are_ordered_by_cosine_and_narrowed_by_the_match_mode() -> None:
    index, source = built(), FakeEmbedding()
    embedding.fill(index, source, check=lambda: None)
    vector = embedding.query_vector(source, "notes about rockets")
    found = index.nearest(vector, "notes about rockets", limit=9)
    assert index.chunk(found[0].passage_id).asset == "d4"
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert len(found) == 4
    narrowed = index.nearest(vector, "退款", limit=9, match=Match.ALL, cards_only=True)
    assert [index.chunk(c.passage_id).asset for c in narrowed] == ["d1", "d3"]
    assert [c.rank for c in narrowed] == [1, 2]


def test_a_vector_of_another_length_is_compared_with_nothing() -> None:
    index = built()
    embedding.fill(index, FakeEmbedding(dim=8), check=lambda: None)
    shorter = embedding.query_vector(FakeEmbedding(dim=4), "rockets")
    with pytest.raises(VaultError) as refused:
        index.nearest(shorter, "rockets", limit=9)
    assert refused.value.code == "source_changed"


def test_the_budget_ends_between_batches_and_keeps_what_is_done() -> None:
    documents = [Document(f"{n:03}", 1, "card", "", f"text {n}") for n in range(40)]
    index, source = built(documents), FakeEmbedding()
    moments = iter([0.0, 0.0, 100.0, 300.0])
    with pytest.raises(VaultError) as refused:
        embedding.fill(index, source, check=lambda: None, clock=lambda: next(moments))
    assert (refused.value.code, index.embedded) == ("timeout", 32)
    assert embedding.fill(index, source, check=lambda: None) == 8


def test_a_lock_after_a_batch_drops_that_batch() -> None:
    index, calls = built(), 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Cancelled("locked")

    with pytest.raises(Cancelled):
        embedding.fill(index, FakeEmbedding(), check=check)
    assert index.embedded == 0


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("timeout", "timeout"),
        ("no_key", "auth_failed"),
        ("invalid_response", "embedding_invalid_response"),
        ("request_failed", "upstream_error"),
        ("model_load_failed", "model_not_installed"),
    ],
)
def test_a_source_that_fails_is_told_by_the_codes_of_vaults(code: str, told: str) -> None:
    with pytest.raises(VaultError) as refused:
        embedding.fill(built(), FailingEmbedding(code), check=lambda: None)
    assert refused.value.code == told


class Wide(FakeEmbedding):
    @property
    def signature(self) -> Signature:
        return Signature("remote", "wide", "1", 10_000_000)


def test_vectors_that_do_not_fit_are_refused_before_any_is_made() -> None:
    source = Wide()
    with pytest.raises(VaultError) as refused:
        embedding.fill(built(), source, check=lambda: None)
    assert (refused.value.code, source.calls) == ("index_too_large", [])


class Shy(FakeEmbedding):
    """Knows its dimension after the first answer."""

    @property
    def signature(self) -> Signature:
        if not self.calls:
            raise EmbeddingFailed("not yet", code="unknown")
        return super().signature


def test_a_source_that_learns_its_dimension_is_asked_once() -> None:
    source = Shy()
    index = built()
    assert embedding.fill(index, source, check=lambda: None) == 4
    assert source.calls[0][1] == ("dimension",)


def test_an_empty_vault_finds_nothing() -> None:
    index = built([])
    assert index.keyword("退款", limit=5) == []
    assert index.nearest(np.ones(4, np.float32), "退款", limit=9) == []


def test_kinds_of_passages_are_those_of_their_documents() -> None:
    kinds = {chunk.asset: chunk.passage.kind for chunk in built().chunks}
    assert kinds == {
        "d1": PassageKind.CARD,
        "d2": PassageKind.MEMORY,
        "d3": PassageKind.CARD,
        "d4": PassageKind.MEMORY,
    }
    assert all(isinstance(chunk.passage, Passage) for chunk in built().chunks)
