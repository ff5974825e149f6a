"""What lies in a vault: how it comes in, how it is kept, and that the database tells nothing."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from engine.types import Mode
from engine.vault.errors import VaultError
from memory.errors import Invalid, NotFound, TooLarge
from memory.models import Vault, VaultAsset, VaultAssetRevision
from memory.principal import Principal
from memory.services import housekeeping
from memory.services.vaults import assets, lifecycle, searching
from memory.services.vaults.assets import AssetDraft
from memory.tests.asking import days_ago
from memory.tests.vaults import closing, opened, query, sealed

pytestmark = pytest.mark.django_db(transaction=True)
MARKER = "Zyx7MARKER"


def ingest(principal: Principal, vault: Vault, text: str, name: str = "notes.md") -> assets.Stored:
    return assets.ingest_file(principal, str(vault.uid), text.encode(), name=name)


def tables() -> str:
    """Everything in the database, as text."""
    found: list[str] = []
    for model in apps.get_models(include_auto_created=True):
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
            found += [str(tuple(map(_shown, row))) for row in cursor.fetchall()]
    return "\n".join(found)


def _shown(value: object) -> object:
    return bytes(value) if isinstance(value, memoryview) else value


def test_a_file_becomes_one_card_with_its_own_text(alice: Principal) -> None:
    vault = sealed(alice)
    text = "# Notes\r\n\r\n本文です😀\r\n"
    stored = assets.ingest_file(
        alice, "notes", b"\xef\xbb\xbf" + text.encode(), name="folder/research.md"
    )
    assert (stored.outcome, stored.asset.kind) == ("created", "card")
    found, shown = assets.read(alice, "notes", str(stored.asset.pk))
    assert (found.content.body, found.content.title) == (text, "research.md")
    assert (shown.revision, vault.assets.count()) == (1, 1)


def test_the_same_source_again_makes_a_revision_or_nothing(alice: Principal) -> None:
    vault = sealed(alice)
    first = ingest(alice, vault, "One text.")
    assert ingest(alice, vault, "One text.").outcome == "unchanged"
    second = ingest(alice, vault, "Another text.")
    assert (second.outcome, second.asset.pk) == ("revised", first.asset.pk)
    assert ingest(alice, vault, "Another text.", name="other.md").outcome == "created"
    was, shown = assets.read(alice, "notes", str(first.asset.pk), 1)
    assert (was.content.body, shown.revision) == ("One text.", 1)
    now_is, _row = assets.read(alice, "notes", str(first.asset.pk))
    assert (now_is.content.body, now_is.asset.revision) == ("Another text.", 2)
    assert [row.revision for row in assets.revisions(alice, "notes", str(first.asset.pk))] == [1]
    with pytest.raises(NotFound):
        assets.read(alice, "notes", str(first.asset.pk), 7)


def test_one_source_may_be_a_card_and_a_memory(alice: Principal) -> None:
    vault = opened(alice)
    for kind in ("card", "memory", "card"):
        assets.put(alice, "library", AssetDraft(f"as {kind}", "t", kind, source="a.md"))
    assert sorted(vault.assets.values_list("kind", flat=True)) == ["card", "memory"]


def test_writers_of_a_source_at_once_make_one_card(alice: Principal) -> None:
    vault = opened(alice)
    acts = [partial(ingest, alice, vault, f"Text {number}.") for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda act: closing(act)(), acts))
    assert sorted(stored.outcome for stored in results) == ["created", *["revised"] * 3]
    assert vault.assets.get().revision == 4


def test_unchanged_chunks_of_a_revision_keep_their_hash_and_vector(alice: Principal) -> None:
    vault = sealed(alice)
    body = "\n\n".join(f"Paragraph {n}. " + "word " * 110 for n in range(6))
    ingest(alice, vault, body)
    first = searching.prepare(alice, "notes")
    ingest(alice, vault, body + "\n\nA last paragraph.")
    second = searching.prepare(alice, "notes")
    assert first.made == first.chunks > 4
    assert second.made <= 2 < second.chunks


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"%PDF-1.7", "unsupported_type"),
        (b"PK\x03\x04", "unsupported_type"),
        (b"\xff", "invalid_utf8"),
        (b"a\0", "invalid_text"),
        (b"  ", "invalid_text"),
    ],
)
def test_what_is_no_text_is_refused_and_nothing_stored(
    data: bytes, code: str, alice: Principal
) -> None:
    vault = opened(alice)
    with pytest.raises(VaultError) as refused:
        assets.ingest_file(alice, "library", data, name="a.bin")
    assert (refused.value.code, vault.assets.count()) == (code, 0)


def test_nothing_of_a_sealed_vault_is_anywhere_in_plain(
    alice: Principal, tmp_path: Path, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings.MEMORY_STUDIO_HOME = tmp_path
    vault = sealed(alice)
    name = str(vault.uid)
    text = f"{MARKER}body word"
    meta = {"author": f"{MARKER}meta"}
    kinds = ["card", "memory", "private", "credential", "file"]
    for kind in kinds:
        draft = AssetDraft(text, f"{MARKER}title", kind, meta, f"{MARKER}{kind}.md")
        stored = assets.put(alice, name, draft)
        assets.revise(alice, name, str(stored.asset.pk), {"body": f"{text} again"})
    for mode in ("keyword", "hybrid"):
        found = searching.find(alice, query(vault, f"{MARKER}body", mode=Mode(mode)))
        assert len(found.found) == 2
    assets.delete(alice, name, str(stored.asset.pk))
    lifecycle.lock(alice, name)
    assert VaultAssetRevision.objects.count() == len(kinds)
    assert MARKER.lower() not in tables().lower()
    assert MARKER.lower() not in caplog.text.lower()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if MARKER.encode() in path.read_bytes()]


def test_credentials_of_an_open_vault_are_sealed_too(alice: Principal) -> None:
    vault = opened(alice)
    for kind in ("private", "credential", "file"):
        stored = assets.put(alice, "library", AssetDraft(f"{MARKER} {kind}", "t", kind))
        whole, _row = assets.read(alice, "library", str(stored.asset.pk))
        assert whole.content.body == f"{MARKER} {kind}"
    assert MARKER not in tables()
    assert vault.assets.count() == 3


@pytest.mark.parametrize("is_sealed", [True, False])
def test_private_kinds_are_never_found(is_sealed: bool, alice: Principal) -> None:
    vault = sealed(alice) if is_sealed else opened(alice)
    for kind in ("private", "credential", "file", "card"):
        assets.put(alice, str(vault.uid), AssetDraft("secret words here", f"the {kind}", kind))
    for mode in ("keyword", "vector", "hybrid"):
        view = searching.find(alice, query(vault, "secret words", mode=Mode(mode)))
        assert [item.chunk.kind for item in view.found] == ["card"]
        assert view.chunks == 1


def test_rows_that_were_swapped_in_the_database_are_noticed(alice: Principal) -> None:
    vault = sealed(alice)
    one, two = ingest(alice, vault, "One."), ingest(alice, vault, "Two.", name="two.md")
    body = VaultAsset.objects.get(pk=two.asset.pk).sealed_body
    VaultAsset.objects.filter(pk=one.asset.pk).update(sealed_body=body)
    with pytest.raises(VaultError) as refused:
        assets.read(alice, "notes", str(one.asset.pk))
    assert refused.value.code == "sealed_damaged"
    ingest(alice, vault, "Two, again.", name="two.md")
    earlier = VaultAssetRevision.objects.get(asset=two.asset)
    VaultAsset.objects.filter(pk=two.asset.pk).update(
        sealed_body=earlier.sealed_body, sealed_head=earlier.sealed_head
    )
    with pytest.raises(VaultError):
        assets.read(alice, "notes", str(two.asset.pk))


def test_what_is_removed_is_out_of_the_index_at_once_and_can_come_back(alice: Principal) -> None:
    vault = sealed(alice)
    stored = ingest(alice, vault, "Findable words.")
    key = str(stored.asset.pk)
    assert searching.find(alice, query(vault, "findable")).found
    assets.delete(alice, "notes", key)
    assert not searching.find(alice, query(vault, "findable")).found
    assert assets.list_page(alice, "notes").total == 0
    again = ingest(alice, vault, "Other words.")
    assert again.outcome == "created"
    assets.restore(alice, "notes", key)
    assert searching.find(alice, query(vault, "findable")).found
    assert assets.list_page(alice, "notes").total == 2
    assets.delete(alice, "notes", key, purge=True)
    with pytest.raises(NotFound):
        assets.restore(alice, "notes", key)


def test_trash_is_erased_after_thirty_days(alice: Principal) -> None:
    vault = sealed(alice)
    old, fresh = ingest(alice, vault, "Old."), ingest(alice, vault, "Fresh.", name="b.md")
    for stored in (old, fresh):
        assets.delete(alice, "notes", str(stored.asset.pk))
    VaultAsset.objects.filter(pk=old.asset.pk).update(trashed_at=days_ago(31))
    housekeeping.purge_trash()
    assert list(VaultAsset.objects.values_list("pk", flat=True)) == [fresh.asset.pk]


def test_assets_are_listed_by_kind_without_their_bodies(alice: Principal) -> None:
    sealed(alice)
    for kind, title in (("card", "A card"), ("private", "A secret"), ("memory", "A memory")):
        assets.put(alice, "notes", AssetDraft("text", title, kind, {"tags": ["x", "y"]}))
    page = assets.list_page(alice, "notes", limit=2)
    assert (page.total, len(page.rows)) == (3, 2)
    assert page.rows[0].content.meta == {"tags": ["x", "y"]}
    only = assets.list_page(alice, "notes", kind="private")
    assert [row.content.title for row in only.rows] == ["A secret"]


def test_metadata_are_searched_and_checked(alice: Principal) -> None:
    vault = sealed(alice)
    assets.put(alice, "notes", AssetDraft("text", "t", meta={"tags": ["finance"], "by": "Ana"}))
    assert searching.find(alice, query(vault, "finance")).found[0].bm25
    wrong: list[dict[Any, Any]] = [
        {"n": 1},
        {"n": [1]},
        {"n": {"a": "b"}},
        {"n": "x" * 20_000},
        {1: "x"},
    ]
    for meta in wrong:
        with pytest.raises(Invalid):
            assets.put(alice, "notes", AssetDraft("text", "t", meta=meta))
    with pytest.raises(Invalid):
        assets.put(alice, "notes", AssetDraft("text", "t", "secret"))
    with pytest.raises(TooLarge):
        assets.put(alice, "notes", AssetDraft("x" * (2**24 + 1), "t"))
    with pytest.raises(VaultError):
        assets.put(alice, "notes", AssetDraft("text", "t", meta={"n": "\0"}))
