from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.errors import Cancelled, InvalidQuery, RerankFailed
from engine.net.client import HttpClient
from engine.rerank.light import LightReranker
from engine.rerank.remote import RemoteReranker, RerankEndpoint
from engine.testing.fake_provider import Answer, serving
from engine.testing.fakes import FakeEmbedding
from engine.text.tokenize import analyzer
from engine.types import Candidate, Health, Match, Mode, Passage, Vector
from engine.vault import embedding
from engine.vault.errors import VaultError
from engine.vault.index import Document, VaultIndex, VectorCache
from engine.vault.search import Found, VaultQuery, search

LONG = "Filler sentence here. " * 60 + "The refund policy stands at the end."
DOCUMENTS = [
    Document("a", 1, "card", "Refund policy", "Refunds within seven days.", "finance"),
    Document("b", 2, "memory", "Shipping", "We ship worldwide and refund late parcels."),
    Document("c", 1, "card", "Long", LONG),
    Document("d", 1, "card", "Rockets", "Rockets fly high."),
]
LIGHT = LightReranker(analyzer("seed"))
SOURCE = FakeEmbedding()


@pytest.fixture(scope="module")
def index() -> VaultIndex:
    made = VaultIndex(DOCUMENTS, VectorCache())
    embedding.fill(made, SOURCE, check=lambda: None)
    return made


def vector_of(text: str) -> Vector:
    return embedding.query_vector(SOURCE, text)


def found(index: VaultIndex, text: str, **options: object) -> list[Found]:
    query = VaultQuery(text, **options)  # type: ignore[arg-type]
    return search(query, index, embed=lambda: vector_of(text))


def test_a_keyword_search_needs_no_model(index: VaultIndex) -> None:
    hits = search(VaultQuery("refund policy", Mode.KEYWORD), index)
    assert [hit.label for hit in hits] == [f"S{place}" for place in range(1, len(hits) + 1)]
    assert hits[0].chunk.asset == "a"
    assert all(
        hit.bm25 == hit.score and hit.vector is hit.rrf is hit.rerank is None for hit in hits
    )


def test_hybrid_fuses_ranks_with_60(index: VaultIndex) -> None:
    words = {
        h.chunk.passage.id: r for r, h in enumerate(found(index, "refund", mode=Mode.KEYWORD), 1)
    }
    near = {
        h.chunk.passage.id: r for r, h in enumerate(found(index, "refund", mode=Mode.VECTOR), 1)
    }
    for hit in found(index, "refund"):
        key = hit.chunk.passage.id
        want = sum(1 / (60 + ranks[key]) for ranks in (words, near) if key in ranks)
        assert hit.rrf == pytest.approx(want)
        assert (hit.bm25 is None) == (key not in words)


def test_vector_and_hybrid_without_a_model_do_not_fall_back(index: VaultIndex) -> None:
    for mode in (Mode.VECTOR, Mode.HYBRID):
        with pytest.raises(VaultError) as refused:
            search(VaultQuery("refund", mode), index)
        assert refused.value.code == "model_not_installed"


def test_match_modes_bind_what_meaning_finds(index: VaultIndex) -> None:
    for mode in (Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID):
        hits = found(index, "refund policy", mode=mode, match=Match.PHRASE)
        assert {hit.chunk.asset for hit in hits} == {"a", "c"}


def test_cards_only_leaves_memories_out(index: VaultIndex) -> None:
    for mode in (Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID):
        hits = found(index, "refund", mode=mode, cards_only=True)
        assert hits and all(hit.chunk.kind == "card" for hit in hits)


def test_a_grouped_search_names_each_document_once(index: VaultIndex) -> None:
    chunks = found(index, "filler sentence refund", mode=Mode.KEYWORD)
    grouped = found(index, "filler sentence refund", mode=Mode.KEYWORD, grouped=True)
    assert len({hit.chunk.asset for hit in chunks}) < len(chunks)
    names = [hit.chunk.asset for hit in grouped]
    assert len(names) == len(set(names))
    assert grouped[0].chunk == chunks[0].chunk


def test_the_light_reranker_prefers_coverage_and_phrase(index: VaultIndex) -> None:
    query = VaultQuery("late parcels", Mode.HYBRID)
    hits = search(query, index, embed=lambda: vector_of("late parcels"), reranker=LIGHT)
    assert hits[0].chunk.asset == "b"
    assert all(hit.rerank == hit.score for hit in hits)


def test_the_same_search_twice_is_the_same(index: VaultIndex) -> None:
    assert found(index, "refund rockets") == found(index, "refund rockets")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"text": "x" * 1025}, "query_too_long"),
        ({"text": " ".join(f"w{n}" for n in range(65))}, "too_many_terms"),
        ({"text": "，。！"}, "empty_query"),
        ({"text": "x", "limit": 0}, "limit_out_of_range"),
        ({"text": "x", "limit": 101}, "limit_out_of_range"),
        ({"text": "x", "mode": Mode.RECENT}, "invalid_mode"),
    ],
)
def test_limits_are_refused_and_not_cut(
    options: dict[str, object], code: str, index: VaultIndex
) -> None:
    with pytest.raises(InvalidQuery) as refused:
        search(VaultQuery(**options), index)  # type: ignore[arg-type]
    assert refused.value.code == code


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_lock_between_any_steps_gives_no_result(steps: int, index: VaultIndex) -> None:
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls > steps:
            raise Cancelled("locked")

    with pytest.raises(Cancelled):
        search(VaultQuery("refund", Mode.KEYWORD), index, reranker=LIGHT, check=check)


class Broken:
    name = "remote"

    def __init__(self, code: str) -> None:
        self.code = code

    def rerank(
        self, query: str, candidates: Sequence[tuple[Candidate, Passage]]
    ) -> list[Candidate]:
        raise RerankFailed("The reranker sent half.", code=self.code)

    def health(self) -> Health:
        return Health(False, "broken")


def test_a_reranker_that_fails_fails_the_search_and_says_what_helps(index: VaultIndex) -> None:
    for code, told in (("invalid_response", "rerank_invalid_response"), ("x", "upstream_error")):
        with pytest.raises(VaultError, match="no-rerank") as refused:
            search(VaultQuery("refund", Mode.KEYWORD), index, reranker=Broken(code))
        assert refused.value.code == told


def test_a_service_that_swaps_or_drops_documents_is_refused(index: VaultIndex) -> None:
    with serving() as provider:
        provider.respond = lambda request: Answer(
            200, b'{"results": [{"index": 0, "relevance_score": 1}]}'
        )
        client = HttpClient()
        endpoint = RerankEndpoint(f"http://127.0.0.1:{provider.port}/rerank", "m")
        reranker = RemoteReranker(endpoint, client=client)
        with pytest.raises(VaultError) as refused:
            search(VaultQuery("refund", Mode.KEYWORD), index, reranker=reranker)
        client.close()
    assert refused.value.code == "rerank_invalid_response"
    sent = provider.requests[0].json()
    assert set(sent) == {"model", "query", "documents", "top_n"}
    documents = sent["documents"]
    assert isinstance(documents, list) and sent["top_n"] == len(documents)
