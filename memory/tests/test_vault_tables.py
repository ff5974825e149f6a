"""Open vaults in the tables of memories: what they find, and that rows follow every change."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from engine.errors import InvalidQuery
from engine.types import Match, Mode
from engine.vault.errors import VaultError
from memory import vault_wiring, wiring
from memory.errors import Invalid, NotFound
from memory.models import AuditEntry, Job, Passage, Vault, VaultChunk, VectorMark
from memory.principal import Principal
from memory.services import embedding, housekeeping, reindex
from memory.services.vaults import assets, chunking, lifecycle, parcels, searching, taking_in
from memory.services.vaults.assets import AssetDraft
from memory.services.vaults.parcels import Destination
from memory.tests.asking import days_ago
from memory.tests.conftest import Work
from memory.tests.vaults import PASSPHRASE, fill, opened, query, sealed

pytestmark = pytest.mark.django_db(transaction=True)
MODES = (Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID)
LONG = "\n\n".join(f"Paragraph {n}. " + f"word{n} " * 90 for n in range(6))


@pytest.fixture
def library(alice: Principal) -> Vault:
    made = opened(alice)
    fill(alice, made)
    return made


def titles(principal: Principal, vault: Vault, text: str, **options: Any) -> list[str]:
    view = searching.find(principal, query(vault, text, **options))
    return [item.chunk.passage.title for item in view.found]


def rows(vault: Vault) -> list[tuple[int, int, str]]:
    """Id, place and hash of the passages of a vault, in the order of the text."""
    found = Passage.objects.filter(vault_id=vault.pk).order_by("asset", "ordinal")
    return list(found.values_list("pk", "ordinal", "text_hash"))


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_what_an_open_vault_holds(
    mode: Mode, alice: Principal, library: Vault
) -> None:
    assert titles(alice, library, "refund policy days", mode=mode)[0] == "Refund policy"
    assert titles(alice, library, "退款", mode=mode)[0] == "Refund policy"
    for match, text in ((Match.PHRASE, "seven days"), (Match.ALL, "days seven paid")):
        assert titles(alice, library, text, mode=mode, match=match) == ["Refund policy"]
        assert titles(alice, library, f"{text} zebra", mode=mode, match=match) == []
    cards = searching.find(alice, query(library, "parcels", mode=mode, cards_only=True))
    assert {item.chunk.kind for item in cards.found} == {"card"}
    assert vault_wiring.keeper().cached == 0


def test_a_result_says_where_its_text_stands(alice: Principal, library: Vault) -> None:
    stored = assets.put(alice, "library", AssetDraft(f"序文。{LONG}", title="Long", source="l"))
    assets.put(alice, "library", AssetDraft(f"序文二。{LONG}", title="Long", source="l"))
    view = searching.find(alice, query(library, "word4", rerank=False))
    chunk = view.found[0].chunk
    body = f"序文二。{LONG}".encode()
    assert body[chunk.byte_start : chunk.byte_end].decode() == chunk.passage.body
    assert (chunk.asset, chunk.revision, chunk.kind) == (str(stored.asset.pk), 2, "card")
    assert view.found[0].label == "S1"
    assert (view.chunks, view.embedded) == (len(rows(library)), len(rows(library)))


def test_scores_are_told_by_list_and_stage(alice: Principal, library: Vault) -> None:
    (best, *_rest) = searching.find(alice, query(library, "refund days")).found
    assert best.bm25 and best.vector and best.rrf and best.rerank == best.score
    (plain, *_rest) = searching.find(
        alice, query(library, "refund days", mode=Mode.KEYWORD, rerank=False)
    ).found
    assert (plain.vector, plain.rrf, plain.rerank, plain.score) == (None, None, None, plain.bm25)


def test_grouped_results_name_each_document_once(alice: Principal, library: Vault) -> None:
    assets.put(alice, "library", AssetDraft(LONG, title="Long"))
    found = titles(alice, library, "paragraph word1 word2", grouped=True)
    assert found.count("Long") == 1
    assert titles(alice, library, "paragraph word1 word2").count("Long") > 1


def test_equal_scores_are_ordered_by_asset_and_place(alice: Principal) -> None:
    vault = opened(alice)
    for number in range(5):
        assets.put(alice, "library", AssetDraft("the same words", title="t", source=str(number)))
    view = searching.find(alice, query(vault, "same words", mode=Mode.KEYWORD, rerank=False))
    names = [item.chunk.asset for item in view.found]
    assert len(names) == 5 and names == sorted(names)


def test_limits_of_a_search_are_refused(alice: Principal, library: Vault) -> None:
    for text, limit, code in (
        ("x" * 1025, 8, "query_too_long"),
        ("x", 101, "limit_out_of_range"),
        ("。", 8, "empty_query"),
        (" ".join(f"w{n}" for n in range(65)), 8, "too_many_terms"),
    ):
        with pytest.raises(InvalidQuery) as refused:
            searching.find(alice, query(library, text, limit=limit))
        assert refused.value.code == code


def test_private_content_credentials_and_files_are_in_no_index(
    alice: Principal, library: Vault
) -> None:
    before = rows(library)
    for kind in ("private", "credential", "file"):
        assets.put(alice, "library", AssetDraft(f"{kind} xylophone", "xylophone", kind))
    assert rows(library) == before
    assert titles(alice, library, "xylophone", mode=Mode.KEYWORD) == []


def test_nothing_of_a_sealed_vault_comes_into_the_tables(alice: Principal) -> None:
    fill(alice, sealed(alice))
    assert not Passage.objects.exists()
    assert not VaultChunk.objects.exists()


def test_unchanged_chunks_keep_row_hash_and_vector_wherever_they_move(
    alice: Principal, library: Vault, work: Work
) -> None:
    assets.put(alice, "library", AssetDraft(LONG, title="Long", source="l"))
    work()
    held = {text: pk for pk, _place, text in rows(library)}
    index = embedding.active_index()
    assert index is not None and not index.marks.exists()
    stored = assets.put(
        alice, "library", AssetDraft(f"{LONG}\n\nA last one.", title="Long", source="l")
    )
    assert stored.outcome == "revised"
    after = {text: pk for pk, _place, text in rows(library)}
    same = held.keys() & after.keys()
    assert len(same) >= len(held) - 1
    assert {text: after[text] for text in same} == {text: held[text] for text in same}
    assert set(index.marks.values_list("passage", flat=True)) == set(after.values()) - set(
        held.values()
    )
    moved = f"New first words, and {LONG[: LONG.index('Paragraph 1.')]}{LONG}"
    assets.put(alice, "library", AssetDraft(moved, title="Long", source="l"))
    for row in Passage.objects.filter(vault_id=library.pk).select_related("chunk", "asset"):
        assert row.asset is not None
        data = row.asset.body.encode()
        assert data[row.chunk.byte_start : row.chunk.byte_end].decode() == row.chunk.text
        assert row.asset.body[row.start : row.end] == row.chunk.text


def test_other_metadata_reword_chunks_and_embed_nothing(
    alice: Principal, library: Vault, work: Work
) -> None:
    stored = assets.put(alice, "library", AssetDraft("Alpha.", "Greek", source="g"))
    work()
    assets.revise(alice, "library", str(stored.asset.pk), {"meta": {"topic": "zymurgy"}})
    assert titles(alice, library, "zymurgy", mode=Mode.KEYWORD) == ["Greek"]
    assert not VectorMark.objects.exists()


def test_what_is_removed_is_out_at_once_and_back_when_it_is_restored(
    alice: Principal, library: Vault
) -> None:
    name = str(library.assets.get(title="Refund policy").pk)
    searching.prepare(alice, "library")
    assets.delete(alice, "library", name)
    for mode in MODES:
        assert "Refund policy" not in titles(alice, library, "refund policy", mode=mode)
    assert not Passage.objects.filter(asset__title="Refund policy").exists()
    assets.restore(alice, "library", name)
    for mode in MODES:
        assert titles(alice, library, "refund policy", mode=mode)[0] == "Refund policy"
    assets.delete(alice, "library", name, purge=True)
    assert titles(alice, library, "refund", mode=Mode.KEYWORD) == []


def test_old_trash_is_erased(alice: Principal, library: Vault) -> None:
    name = str(library.assets.get(title="Shipping").pk)
    assets.delete(alice, "library", name)
    library.assets.filter(pk=name).update(trashed_at=days_ago(31))
    housekeeping.purge_trash()
    assert not library.assets.filter(pk=name).exists()
    assert len(rows(library)) == 2


def test_a_deleted_vault_leaves_no_row_in_any_index(alice: Principal, library: Vault) -> None:
    other = opened(alice, "other")
    assets.put(alice, "other", AssetDraft("Refund of others.", "Other"))
    searching.prepare(alice, "library")
    searching.prepare(alice, "other")
    index = embedding.active_index()
    assert index is not None
    before = wiring.keyword_index().count()
    lifecycle.delete(alice, "library")
    assert Passage.objects.count() == VaultChunk.objects.count() == 1
    assert (before - wiring.keyword_index().count(), wiring.store_for(index).count()) == (3, 1)
    assert titles(alice, other, "refund") == ["Other"]


def test_a_large_vault_is_erased_in_parts_and_is_whole_again_when_that_is_broken_off(
    alice: Principal, library: Vault, work: Work
) -> None:
    text = "".join(f"Sentence {n} of a long text about quaggas. " for n in range(16_000))
    assets.put(alice, "library", AssetDraft(text, title="Long"))
    assert len(rows(library)) > chunking.PAGE
    before = wiring.keyword_index().count()
    held = len(rows(library))
    chunking.remove_most(library)
    library.refresh_from_db()
    assert library.needs_index
    assert len(rows(library)) < chunking.PAGE
    work()
    assert len(rows(library)) == held
    lifecycle.delete(alice, "library")
    assert not Passage.objects.exists()
    assert before - wiring.keyword_index().count() == held


def test_a_search_under_a_change_gives_no_result(alice: Principal, library: Vault) -> None:
    from memory.services.vaults.access import Watch

    watch = Watch(alice, library)
    assets.put(alice, "library", AssetDraft("New text.", "New"))
    with pytest.raises(VaultError) as refused:
        searching.look(watch, query(library))
    assert refused.value.code == "source_changed"


@pytest.mark.parametrize("into", ["", "library"])
def test_an_imported_file_is_indexed(into: str, alice: Principal, library: Vault) -> None:
    file = io.BytesIO()
    parcels.write(alice, "library", file, PASSPHRASE)
    name = str(library.assets.get(title="Shipping").pk)
    assets.revise(alice, "library", name, {"body": "We ship nowhere."})
    file.seek(0)
    destination = Destination(into=into, name="" if into else "copy", is_open=True)
    done = parcels.read(alice, file, PASSPHRASE, destination)
    assert titles(alice, done.vault, "worldwide", mode=Mode.KEYWORD) == ["Shipping"]
    assert titles(alice, done.vault, "nowhere", mode=Mode.KEYWORD) == []
    assert titles(alice, done.vault, "parcels arrive within a week")[0] == "Shipping"


def test_a_damaged_file_leaves_no_passages(alice: Principal, library: Vault) -> None:
    file = io.BytesIO()
    parcels.write(alice, "library", file, PASSPHRASE)
    cut = io.BytesIO(file.getvalue()[:-40])
    before = Passage.objects.count()
    with pytest.raises(Invalid):
        parcels.read(alice, cut, PASSPHRASE, Destination(name="copy", is_open=True))
    assert Passage.objects.count() == before


def _as_before_the_upgrade(vault: Vault) -> None:
    for row in Passage.objects.filter(vault_id=vault.pk):
        row.delete()
    Vault.objects.update(needs_index=True)
    vault.refresh_from_db()


def test_a_vault_from_before_is_taken_in_and_searched_in_memory_until_then(
    alice: Principal, library: Vault, work: Work
) -> None:
    _as_before_the_upgrade(library)
    for mode in MODES:
        view = searching.find(alice, query(library, "refund policy", mode=mode))
        assert view.found[0].chunk.passage.title == "Refund policy"
        assert "taken into the index" in view.warnings[0]
    assert embedding.resume() is True
    work()
    library.refresh_from_db()
    assert (library.needs_index, len(rows(library)), taking_in.is_waiting()) == (False, 3, False)
    assert searching.find(alice, query(library, "refund")).warnings == []
    assert titles(alice, library, "refund policy")[0] == "Refund policy"


def test_a_start_notices_what_the_tables_lack(alice: Principal, library: Vault, work: Work) -> None:
    work()
    Passage.objects.filter(asset__title="Shipping").delete()
    embedding.reconcile()
    library.refresh_from_db()
    assert library.needs_index
    Job.objects.update(finished_at=days_ago(1))
    assert embedding.resume() is True
    work()
    assert len(rows(library)) == 3
    assert titles(alice, library, "parcels worldwide")[0] == "Shipping"


def test_reindexing_everything_covers_vaults(
    alice: Principal, manager: Principal, library: Vault, work: Work
) -> None:
    work()
    wiring.keyword_index().clear()
    index = embedding.active_index()
    assert index is not None
    wiring.store_for(index).drop()
    reindex.start(manager, force=True)
    work()
    assert embedding.coverage().percent == 100.0
    assert wiring.keyword_index().count() == wiring.store_for(index).count() == 3
    for mode in MODES:
        assert titles(alice, library, "refund policy", mode=mode)[0] == "Refund policy"


def test_figures_are_those_of_the_tables(alice: Principal, library: Vault, work: Work) -> None:
    before = searching.status(alice, "library").figures
    assert (before.is_indexed, before.chunks, before.embedded) == (True, 3, 0)
    work()
    found = searching.status(alice, "library")
    assert (found.figures.chunks, found.figures.embedded) == (3, 3)
    assert found.figures.signature == str(embedding.coverage().signature)
    assert found.figures.text_bytes == sum(row.size for row in library.assets.all())
    assert (found.backend.kind, found.backend.model, found.warnings) == ("local", "fake-e5", [])


def test_an_index_is_filled_within_a_budget(alice: Principal, library: Vault) -> None:
    first = searching.prepare(alice, "library", budget_s=0)
    assert (first.chunks, first.made, first.is_complete) == (3, 0, False)
    second = searching.prepare(alice, "library")
    assert (second.made, second.is_complete, second.model) == (3, True, "fake-e5")


def test_searches_leave_audit_rows_without_text(alice: Principal, library: Vault) -> None:
    view = searching.find(alice, query(library, "refund"))
    entry = AuditEntry.objects.get(action="vault.search")
    assert set(entry.target_ids) == {item.chunk.asset for item in view.found}
    assert "refund" not in str(entry.detail).lower()


@pytest.mark.parametrize(("mode", "most"), [(Mode.KEYWORD, 16), (Mode.HYBRID, 30)])
def test_a_search_asks_the_database_little(
    mode: Mode,
    most: int,
    alice: Principal,
    library: Vault,
    django_assert_max_num_queries: Callable[[int], Any],
) -> None:
    for _ in range(2):
        searching.find(alice, query(library, mode=mode))
    with django_assert_max_num_queries(most):
        searching.find(alice, query(library, mode=mode))


def test_a_stranger_finds_no_vault(alice: Principal, bob: Principal, library: Vault) -> None:
    with pytest.raises(NotFound):
        searching.find(bob, query(library))
