"""The list: filters, order, pages, the open row, and how many queries it takes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.clock import now
from memory.models import ApiKey
from memory.principal import Principal
from memory.tests.conftest import Remember
from memory.tests.views.conftest import Studio

MAIN = "memories-main"


def test_nothing_stored_yet_offers_to_add(studio: Studio) -> None:
    body = studio.text("/")
    assert "No memories yet" in body
    assert "Add the first memory" in body


def test_nothing_found_offers_to_clear_the_filters(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea")
    body = studio.text("/?q=coffee")
    assert "Clear filters" in body
    assert "likes tea" not in body


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("q=tea", ["likes tea"]),
        ("q=100%25", []),
        ("type=episodic", ["went to Kyoto"]),
        ("session=s-1", ["likes tea"]),
        ("state=hidden", ["old fact"]),
        ("type=nonsense&size=7&sort=made-up&page=-3", ["likes tea", "old fact", "went to Kyoto"]),
    ],
)
def test_filters_narrow_the_list(
    studio: Studio, alice: Principal, remember: Remember, query: str, shown: list[str]
) -> None:
    remember(alice, "likes tea", session_id="s-1")
    remember(alice, "went to Kyoto", type="episodic")
    remember(alice, "old fact", expires_at=now() - timedelta(days=1))
    body = studio.text(f"/?{query}", target=MAIN)
    found = [t for t in ("likes tea", "old fact", "went to Kyoto") if f'text">{t}' in body]
    assert found == shown


def test_hidden_rows_stay_in_the_list_and_say_why(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    remember(alice, "old fact", expires_at=now() - timedelta(days=1))
    body = studio.text("/")
    assert "expired" in body
    assert "never retrieved any more" in body


def test_the_chosen_key_is_kept_in_the_session(
    studio: Studio, alice: Principal, bob: Principal, remember: Remember
) -> None:
    remember(alice, "alice likes tea")
    remember(bob, "bob likes coffee")
    uid = ApiKey.objects.get(name="bob").uid
    assert "alice likes tea" not in studio.text(f"/?owner={uid}")
    body = studio.text("/")
    assert "bob likes coffee" in body
    assert "alice likes tea" not in body
    assert "alice likes tea" in studio.text("/?owner=")


def test_the_address_of_every_link_keeps_the_filters(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    for number in range(21):
        remember(alice, f"tea number {number}", key=f"tea:{number}")
    body = studio.text("/?q=tea&size=20", target=MAIN)
    assert "q=tea&amp;size=20&amp;page=2" in body
    assert "1–20 of 21" in body
    assert "21–21 of 21" in studio.text("/?q=tea&size=20&page=2", target=MAIN)


def test_headings_sort_and_turn_the_order(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    remember(alice, "b", key="b")
    remember(alice, "a", key="a")
    body = studio.text("/?sort=key", target=MAIN)
    assert body.index(">a</a>") < body.index(">b</a>")
    assert 'aria-sort="ascending"' in body
    assert "sort=-key" in body


def test_a_row_opens_beside_the_list_without_javascript(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea", metadata={"source": "chat"})
    body = studio.text(f"/?open={memory.pk}")
    assert 'id="peek-title"' in body
    assert "&quot;source&quot;: &quot;chat&quot;" in body
    assert "This memory has never been changed." in body


def test_the_panel_alone_answers_htmx(studio: Studio, alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    body = studio.text(f"/?open={memory.pk}", target="memories-peek")
    assert 'id="peek-title"' in body
    assert "<table" not in body


@pytest.mark.parametrize("value", ["nonsense", "00000000-0000-0000-0000-000000000000"])
def test_a_row_that_is_gone_leaves_the_list_alone(studio: Studio, value: str) -> None:
    body = studio.text(f"/?open={value}&edit={value}")
    assert 'id="peek-title"' not in body


def test_text_is_shown_as_text(studio: Studio, alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "<b>bold</b> & <script>alert(1)</script>", key="<i>key</i>")
    body = studio.text(f"/?open={memory.pk}")
    assert "<script>alert" not in body
    assert "<i>key" not in body
    assert "&lt;script&gt;alert" in body


def test_the_list_takes_the_same_number_of_queries_for_two_rows_and_for_fifty(
    studio: Studio, alice: Principal, bob: Principal, remember: Remember
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            studio.text("/")
        return len(captured)

    remember(alice, "first", key="0")
    remember(bob, "second", key="0")
    studio.text("/")
    few = queries()
    for number in range(1, 25):
        remember(alice, f"alice {number}", key=str(number))
        remember(bob, f"bob {number}", key=str(number))
    assert queries() == few
    assert few <= 20


@pytest.mark.parametrize("name", ["page", "size"])
def test_a_number_of_thousands_of_digits_is_no_error(studio: Studio, name: str) -> None:
    assert studio.get(f"/?{name}={'9' * 5000}").status_code == 200
