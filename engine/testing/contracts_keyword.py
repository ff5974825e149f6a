"""The contract of ``KeywordIndex``: an index is done when its subclass of this suite passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import InvalidQuery
from engine.protocols import KeywordIndex
from engine.types import Match, MemoryType, Passage, PassageKind, Scope

NOW_MS = 1_800_000_000_000
ALICE, BOB = 11, 12
HOSTILE = (
    "Node.js",
    "C++",
    "what's my name?",
    "AND",
    "content:deploy",
    "title:deploy",
    "dep*",
    "NEAR(a b)",
    '"unbalanced',
    "it''s",
    "((a) OR",
    "a AND NOT b",
    "^deploy",
    "-deploy + x",
    "{title body}: x",
    "nul\0byte",
    "\ud800 surrogate",
    "🚀",
    "👨‍👩‍👧‍👦 family",
    "e\u0301 " * 20,
    "x" * 1024,
    "中" * 341,
)
ALPHABET = st.one_of(
    st.characters(),
    st.sampled_from("\"'()*:^+-{}[]\\\0\ud800 \n aAnNdDoOrR退款あア한ก़🚀.#&@_%;,"),
)


def passage(passage_id: int, body: str, **changes: Any) -> Passage:
    """A live passage of Alice with this body; ``changes`` are further columns."""
    plain = Passage(
        id=passage_id,
        kind=PassageKind.MEMORY,
        parent=str(passage_id),
        ordinal=0,
        owner=ALICE,
        title="",
        body=body,
        meta="",
        text_hash="",
        parent_tokens=0,
        type=MemoryType.FACTUAL,
        created_ms=NOW_MS,
        retained_ms=NOW_MS,
    )
    return replace(plain, **changes)


class KeywordIndexContract:
    """Subclass it, and give ``make_index``; override ``store`` where the scope lives elsewhere."""

    def make_index(self) -> KeywordIndex:
        """A new, empty index with the analyzer ``search``, ready for use."""
        pytest.fail("the subclass gives the index")

    def store(self, index: KeywordIndex, passages: Sequence[Passage]) -> None:
        """Make passages known: the index and, where it does not own them, the scope columns."""
        index.upsert(passages)

    def stocked(self, *passages: Passage) -> KeywordIndex:
        """An index that holds these passages."""
        index = self.make_index()
        self.store(index, passages)
        return index

    def found(
        self, index: KeywordIndex, query: str, match: Match = Match.ANY, **scope: Any
    ) -> list[int]:
        """Ids that a search finds, best first; in Alice's scope unless it says otherwise."""
        whole: dict[str, Any] = {"now_ms": NOW_MS, "owners": frozenset({ALICE}), **scope}
        hits = index.search(query, scope=Scope(**whole), limit=20, match=match)
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        return [hit.passage_id for hit in hits]

    def test_fts_sync_01_a_new_passage_is_found_by_its_own_word(self) -> None:
        index = self.stocked(passage(1, "deploys on Monday"))
        assert self.found(index, "monday") == [1]

    def test_fts_sync_03_a_changed_passage_is_not_found_by_its_old_word(self) -> None:
        index = self.stocked(passage(1, "the door is red"))
        self.store(index, [passage(1, "the door is blue")])
        assert self.found(index, "red") == []
        assert self.found(index, "blue") == [1]
        assert index.count() == 1

    def test_a_deleted_passage_is_gone_and_unknown_ids_are_fine(self) -> None:
        index = self.stocked(passage(1, "red door"), passage(2, "red wall"))
        index.delete([1, 999])
        assert self.found(index, "red") == [2]
        assert index.count() == 1

    def test_clear_empties_and_leaves_a_usable_index(self) -> None:
        index = self.stocked(passage(1, "red door"))
        index.clear()
        assert index.count() == 0
        assert self.found(index, "red") == []
        self.store(index, [passage(2, "red wall")])
        assert self.found(index, "red") == [2]

    def test_ensure_twice_keeps_what_is_there(self) -> None:
        index = self.stocked(passage(1, "red door"))
        index.ensure()
        assert self.found(index, "red") == [1]

    def test_no_passages_are_no_work(self) -> None:
        index = self.stocked()
        index.upsert([])
        index.delete([])
        assert index.count() == 0

    def test_title_outranks_metadata_and_metadata_body(self) -> None:
        index = self.stocked(
            passage(1, "refund of an order"),
            passage(2, "of an order", meta="refund"),
            passage(3, "of an order", title="refund"),
        )
        assert self.found(index, "refund") == [3, 2, 1]

    def test_equal_scores_are_ordered_by_id(self) -> None:
        index = self.stocked(*(passage(number, "same words") for number in (5, 3, 9, 1)))
        assert self.found(index, "words") == [1, 3, 5, 9]

    def test_limit_bounds_what_comes_back(self) -> None:
        index = self.stocked(*(passage(number, "same words") for number in range(1, 9)))
        scope = Scope(now_ms=NOW_MS, owners=frozenset({ALICE}))
        assert len(index.search("words", scope=scope, limit=3)) == 3
        assert len(index.search("words", scope=scope, limit=3, match=Match.ALL)) == 3

    def test_another_owners_passage_is_never_found(self) -> None:
        index = self.stocked(passage(1, "secret plan", owner=BOB), passage(2, "secret plan"))
        assert self.found(index, "secret") == [2]
        assert self.found(index, "secret", Match.PHRASE) == [2]
        assert self.found(index, "secret", owners=frozenset({BOB})) == [1]

    def test_a_scope_that_names_nobody_finds_nothing(self) -> None:
        index = self.stocked(passage(1, "secret plan"))
        assert self.found(index, "secret", owners=frozenset()) == []

    def test_every_owner_is_found_when_all_are_asked_for(self) -> None:
        index = self.stocked(passage(1, "plan", owner=BOB), passage(2, "plan"))
        assert self.found(index, "plan", owners=None) == [1, 2]

    def test_a_small_owner_beside_a_huge_one_gets_its_hits(self) -> None:
        crowd = [passage(number, "coffee " * 5, owner=BOB) for number in range(1, 301)]
        index = self.stocked(*crowd, passage(999, "one coffee among many other words"))
        assert self.found(index, "coffee") == [999]
        assert self.found(index, "coffee", Match.ALL) == [999]

    def test_shared_passages_join_only_when_asked_for(self) -> None:
        index = self.stocked(passage(1, "plan", owner=BOB, is_shared=True), passage(2, "plan"))
        assert self.found(index, "plan") == [2]
        assert self.found(index, "plan", include_shared=True) == [1, 2]
        assert self.found(index, "plan", owners=frozenset(), include_shared=True) == [1]

    def test_a_vault_is_found_only_by_its_name(self) -> None:
        index = self.stocked(passage(1, "plan", vault=7), passage(2, "plan"))
        assert self.found(index, "plan") == [2]
        assert self.found(index, "plan", owners=None) == [2]
        assert self.found(index, "plan", vaults=frozenset({7})) == [1, 2]
        assert self.found(index, "plan", owners=frozenset(), vaults=frozenset({7})) == [1]

    def test_a_session_and_types_narrow_the_scope(self) -> None:
        index = self.stocked(
            passage(1, "plan", session="s1"),
            passage(2, "plan", session="s2", type=MemoryType.EPISODIC),
        )
        assert self.found(index, "plan", session="s1") == [1]
        assert self.found(index, "plan", types=frozenset({MemoryType.EPISODIC})) == [2]

    def test_expired_archived_and_excluded_passages_are_hidden(self) -> None:
        index = self.stocked(
            passage(1, "plan", expires_ms=NOW_MS),
            passage(2, "plan", expires_ms=NOW_MS + 1),
            passage(3, "plan", is_archived=True),
            passage(4, "plan"),
        )
        assert self.found(index, "plan", excluded=frozenset({4})) == [2]
        assert self.found(index, "plan", only=frozenset({1, 4})) == [4]
        assert self.found(index, "plan", only=frozenset()) == []

    def test_retention_hides_old_passages_but_pinned_ones(self) -> None:
        index = self.stocked(
            passage(1, "plan", retained_ms=NOW_MS - 10),
            passage(2, "plan", retained_ms=NOW_MS - 10, is_pinned=True),
            passage(3, "plan", retained_ms=NOW_MS - 5),
            passage(4, "plan", retained_ms=NOW_MS - 10, type=MemoryType.SEMANTIC),
        )
        limits = {MemoryType.FACTUAL: NOW_MS - 5}
        assert self.found(index, "plan", retained_after_ms=limits) == [2, 3, 4]

    def test_match_modes_any_all_and_phrase(self) -> None:
        index = self.stocked(
            passage(1, "the rate limits of the API"),
            passage(2, "limits on the rate"),
            passage(3, "rate only"),
        )
        assert set(self.found(index, "rate limits")) == {1, 2, 3}
        assert set(self.found(index, "rate limits", Match.ALL)) == {1, 2}
        assert self.found(index, "Rate  LIMITS", Match.PHRASE) == [1]

    def test_mode_all_finds_words_across_the_fields_of_one_passage(self) -> None:
        index = self.stocked(passage(1, "limits", title="rate"), passage(2, "limits"))
        assert self.found(index, "rate limits", Match.ALL) == [1]

    def test_a_phrase_ends_at_word_edges(self) -> None:
        index = self.stocked(passage(1, "our policy"), passage(2, "the API版本 of it"))
        assert self.found(index, "polic", Match.PHRASE) == []
        assert self.found(index, "policy", Match.PHRASE) == [1]
        assert self.found(index, "api", Match.PHRASE) == [2]

    def test_the_verified_modes_page_on_until_the_limit(self) -> None:
        noise = [passage(number, "limits rate " * 3) for number in range(1, 251)]
        index = self.stocked(*noise, passage(300, "rate limits and many more words beside them"))
        assert self.found(index, "rate limits and many", Match.PHRASE) == [300]

    def test_fts_raw_query_02_one_unknown_word_does_not_empty_the_result(self) -> None:
        index = self.stocked(passage(1, "deploy on Friday"))
        assert self.found(index, "deploy Monday") == [1]

    def test_fts_raw_query_03_node_js_matches_whole_and_in_parts(self) -> None:
        index = self.stocked(passage(1, "we use Node.js"), passage(2, "node and js apart"))
        assert self.found(index, "Node.js")[0] == 1
        assert set(self.found(index, "node")) == {1, 2}

    def test_fts_raw_query_04_c_plus_plus_is_not_c(self) -> None:
        index = self.stocked(passage(1, "written in C"), passage(2, "written in C++"))
        assert self.found(index, "C++")[0] == 2
        assert self.found(index, "C++", Match.ALL) == [2]

    @pytest.mark.parametrize("query", ["AND", "or", "not"])
    def test_fts_raw_query_07_operators_are_words(self, query: str) -> None:
        index = self.stocked(passage(1, f"a chip with {query} gates"), passage(2, "no gates"))
        assert self.found(index, query)[:1] == [1]

    def test_fts_raw_query_08_a_colon_is_no_column_filter(self) -> None:
        index = self.stocked(passage(1, "deploy"), passage(2, "content"))
        assert set(self.found(index, "content:deploy")) == {1, 2}

    def test_fts_raw_query_09_a_star_is_no_prefix(self) -> None:
        assert self.found(self.stocked(passage(1, "deploy")), "dep*") == []

    @pytest.mark.parametrize("query", ["我喜欢喝咖啡", "咖啡", "喜欢", "喝咖啡", "咖", "啡"])
    @pytest.mark.parametrize("match", list(Match))
    def test_fts_raw_query_11_any_part_of_chinese_text_is_found(
        self, query: str, match: Match
    ) -> None:
        index = self.stocked(passage(1, "我喜欢喝咖啡"), passage(2, "他不爱茶"))
        assert self.found(index, query, match) == [1]

    @pytest.mark.parametrize("query", ["タワー", "東京", "近くに住", "住", "커피", "피"])
    def test_parts_of_japanese_and_korean_text_are_found(self, query: str) -> None:
        index = self.stocked(passage(1, "東京タワーの近くに住んでいる。커피를 좋아해요"))
        assert self.found(index, query) == [1]
        assert self.found(index, query, Match.ALL) == [1]
        assert self.found(index, query, Match.PHRASE) == [1]

    def test_full_width_letters_are_the_same_letters(self) -> None:
        index = self.stocked(passage(1, "our ｐｏｌｉｃｙ"))
        assert self.found(index, "POLICY") == [1]

    def test_a_question_of_stop_words_only_still_searches(self) -> None:
        index = self.stocked(passage(1, "who are you"))
        assert self.found(index, "who are you?") == [1]

    @pytest.mark.parametrize("query", ["", "   ", "(((", "，。！", "\0", "\ud800"])
    def test_a_query_without_any_word_is_refused(self, query: str) -> None:
        with pytest.raises(InvalidQuery) as refusal:
            self.found(self.stocked(passage(1, "deploy")), query)
        assert refusal.value.code == "empty_query"

    @pytest.mark.parametrize("match", list(Match))
    def test_a_hostile_text_is_stored_and_finds_itself(self, match: Match) -> None:
        index = self.stocked(*(passage(number, text) for number, text in enumerate(HOSTILE, 1)))
        for number, text in enumerate(HOSTILE, 1):
            assert number in self.found(index, text, match), text

    @pytest.mark.parametrize("match", list(Match))
    def test_no_text_raises_anything_but_an_invalid_query(self, match: Match) -> None:
        index = self.stocked(passage(1, "deploy 退款 🚀"), passage(2, "あア한 C++"))

        @given(st.text(ALPHABET, max_size=60))
        @settings(max_examples=150, deadline=None, database=None)
        def search(text: str) -> None:
            try:
                hits = self.found(index, text, match)
            except InvalidQuery as refusal:
                assert refusal.code == "empty_query"
            else:
                assert set(hits) <= {1, 2}

        search()

    def test_any_text_can_be_indexed_and_then_finds_itself(self) -> None:
        index = self.make_index()

        @given(st.text(ALPHABET, max_size=60))
        @settings(max_examples=150, deadline=None, database=None)
        def index_and_search(text: str) -> None:
            self.store(index, [passage(1, text, title=text, meta=text)])
            if index.terms(text):
                assert self.found(index, text) == [1]

        index_and_search()

    def test_terms_are_distinct_and_in_order(self) -> None:
        terms = self.make_index().terms("deploy Deploy friday")
        assert len(terms) == len(set(terms)) == 2

    def test_health_searches_and_a_second_search_gives_the_same(self) -> None:
        index = self.stocked(passage(1, "deploy on Friday"), passage(2, "deploy on Monday"))
        health = index.health()
        assert health.available
        assert health.reason == ""
        assert self.found(index, "deploy friday") == self.found(index, "deploy friday")
