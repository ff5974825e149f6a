"""The pages of one vault: its content, searching it, reading and changing a document."""

from __future__ import annotations

import re
from typing import Any

import pytest

from engine.types import Mode
from memory.models import Vault, VaultAsset
from memory.principal import Principal
from memory.services.vaults import assets, searching
from memory.services.vaults.assets import AssetDraft
from memory.services.vaults.reading import SHOWN_BYTES, part
from memory.tests.vaults import fill, opened, query, sealed
from memory.tests.views.conftest import Studio

pytestmark = pytest.mark.django_db
SEARCH: dict[str, Any] = {
    "mode": "keyword",
    "match": "any",
    "limit": 8,
    "view": "chunks",
    "rerank": "on",
}
EVIL = "<script>alert(1)</script> refund"


def path_of(vault: Vault, rest: str = "") -> str:
    return f"/vaults/{vault.uid}/{rest}"


def asked(studio: Studio, vault: Vault, text: str, **fields: Any) -> Any:
    form = SEARCH | {"q": text} | fields
    return studio.post(path_of(vault, "search/"), form, target="vault-main", at=path_of(vault))


def test_a_search_shows_labels_scores_and_where_a_passage_stands(
    studio: Studio, alice: Principal
) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    page = asked(studio, vault, "refunds").content.decode()
    found = searching.find(alice, query(vault, "refunds", mode=Mode.KEYWORD)).found[0].chunk
    assert "<html" not in page and ">S1<" in page and "keyword" in page and "rerank" in page
    assert f"from={found.byte_start}&amp;to={found.byte_end}#chunk" in page
    assert found.chunk_hash in page
    assert 'id="vault-status"' in page and "in memory" in page
    plain = studio.post(path_of(vault, "search/"), SEARCH | {"q": "refunds"})
    assert "<html" in plain.content.decode() and "Refund policy" in plain.content.decode()
    assert plain["Cache-Control"] == "no-store"


def test_an_address_never_holds_a_query(studio: Studio, alice: Principal) -> None:
    vault = opened(alice)
    away = studio.get(path_of(vault, "search/?q=secret"))
    assert (away.status_code, away["Location"]) == (302, path_of(vault))


def test_what_cannot_be_searched_is_told(studio: Studio, alice: Principal) -> None:
    vault = opened(alice)
    fill(alice, vault)
    for text, told in (("", "required"), ("?!", "no word"), ("a" * 1025, "1024")):
        refused = asked(studio, vault, text)
        assert refused.status_code == 422 and told in refused.content.decode()
    nothing = asked(studio, vault, "zebra").content.decode()
    assert "Nothing in this vault matches" in nothing
    cards = asked(studio, vault, "parcels", cards_only="on", view="grouped").content.decode()
    assert "Shipping" in cards and "Fridays" not in cards


def test_a_document_is_shown_with_its_passage_marked_and_nothing_of_it_is_markup(
    studio: Studio, alice: Principal
) -> None:
    vault = sealed(alice)
    text = f"Für 退款 {EVIL}"
    stored = assets.put(alice, str(vault.uid), AssetDraft(text, title=f"T {EVIL}"))
    first = len("Für ".encode())
    place = f"?revision=1&from={first}&to={first + 6}"
    page = studio.text(path_of(vault, f"assets/{stored.asset.pk}/{place}"))
    assert 'tabindex="-1">退款</mark>' in page and "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    off = studio.text(path_of(vault, f"assets/{stored.asset.pk}/?from={first + 1}&to={first + 6}"))
    assert "no place in this revision" in off and "<mark" not in off
    odd = studio.get(path_of(vault, f"assets/{stored.asset.pk}/?from=x&to=2"))
    assert odd.status_code == 404
    piece = studio.text(path_of(vault, f"assets/{stored.asset.pk}/{place}"), target="vault-source")
    assert "<html" not in piece and 'id="vault-source"' in piece


def test_a_change_makes_a_revision_that_can_be_read(studio: Studio, alice: Principal) -> None:
    vault = opened(alice)
    stored = assets.put(alice, str(vault.uid), AssetDraft("first text", title="T"))
    path = path_of(vault, f"assets/{stored.asset.pk}/")
    sent = {"title": "T", "body": "second\r\ntext", "metadata": '{"by": "me"}'}
    assert studio.post(f"{path}edit/", sent)["Location"] == path
    now = assets.read(alice, str(vault.uid), str(stored.asset.pk))[0].content
    assert now.body == "second\ntext" and now.meta == {"by": "me"}
    old = studio.text(f"{path}?revision=1")
    assert "first text" in old and "earlier revision" in old
    assert studio.get(f"{path}?revision=9").status_code == 404
    bad = studio.post(f"{path}edit/", sent | {"metadata": "{"})
    assert bad.status_code == 422


def test_who_edits_what_another_changed_is_told_and_may_replace_it(
    studio: Studio, alice: Principal
) -> None:
    vault = sealed(alice)
    stored = assets.put(alice, str(vault.uid), AssetDraft("first text", title="T"))
    path = path_of(vault, f"assets/{stored.asset.pk}/")
    sent = {"title": "T", "body": "mine", "metadata": "", "revision": "1"}
    assert 'name="revision" value="1"' in studio.text(f"{path}edit/")
    assets.revise(alice, str(vault.uid), str(stored.asset.pk), {"body": "theirs"})
    late = studio.post(f"{path}edit/", sent)
    page = late.content.decode()
    assert late.status_code == 409
    assert "Someone else changed this document" in page and "mine</textarea>" in page
    assert 'name="revision" value="2"' in page
    assert assets.read(alice, str(vault.uid), str(stored.asset.pk))[0].content.body == "theirs"
    assert studio.post(f"{path}edit/", sent | {"revision": "2"})["Location"] == path
    assert assets.read(alice, str(vault.uid), str(stored.asset.pk))[0].content.body == "mine"


def test_everything_can_be_put_in_removed_and_brought_back(
    studio: Studio, alice: Principal
) -> None:
    vault = sealed(alice)
    for kind in VaultAsset.Kind.values:
        form = {"kind": kind, "title": f"my {kind}", "body": "text", "metadata": ""}
        assert studio.post(path_of(vault, "add/"), form).status_code == 303
    listed = studio.text(path_of(vault))
    assert all(f"my {kind}" in listed for kind in VaultAsset.Kind.values)
    only = studio.text(path_of(vault, "?kind=credential"))
    assert "my credential" in only and "my card" not in only
    row = VaultAsset.objects.get(kind="credential")
    shown = studio.text(path_of(vault, f"assets/{row.pk}/"))
    assert "never searched and never sent" in shown
    studio.post(path_of(vault, f"assets/{row.pk}/delete/"))
    after = studio.text(path_of(vault))
    assert "my credential" not in after and f"assets/{row.pk}/restore/" in after
    studio.post(path_of(vault, f"assets/{row.pk}/restore/"))
    assert "my credential" in studio.text(path_of(vault))


def test_much_is_paged(studio: Studio, alice: Principal) -> None:
    vault = opened(alice)
    for number in range(53):
        assets.put(alice, str(vault.uid), AssetDraft("text", title=f"card {number:03}"))
    first, second = studio.text(path_of(vault)), studio.text(path_of(vault, "?page=2"))
    assert "1–50 of 53" in first and "51–53 of 53" in second
    assert "card 052" in first and "card 000" in second


def test_the_index_is_built_on_demand(studio: Studio, alice: Principal) -> None:
    vault = opened(alice)
    fill(alice, vault)
    assert studio.post(path_of(vault, "index/")).status_code == 303
    assert "3 chunks, 3 new vectors" in re.sub(r"\s+", " ", studio.text(path_of(vault)))


def test_a_large_document_is_shown_in_parts_around_a_mark() -> None:
    body = "é" * SHOWN_BYTES
    first = part(body)
    assert (first.start, first.end, first.earlier, first.later) == (
        0,
        SHOWN_BYTES,
        None,
        SHOWN_BYTES,
    )
    place = SHOWN_BYTES + 50_001
    assert part(body, mark=(place, place + 2)).is_off
    marked = part(body, mark=(place - 1, place + 3))
    assert marked.marked == "éé" and marked.start > 0 and not marked.is_off
    last = part(body, at=marked.end - 1)
    assert last.end == 2 * SHOWN_BYTES and last.later is None
