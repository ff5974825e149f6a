"""The tab Inbox, the panel that tries a turn, and the settings of learning."""

from __future__ import annotations

from typing import Any

import pytest

from memory.models import InboxItem, Memory
from memory.principal import Principal
from memory.services.extraction import learning, settings
from memory.services.extraction.learning import Turn
from memory.tests.views.conftest import Studio

pytestmark = pytest.mark.django_db


@pytest.fixture
def items(alice: Principal) -> list[InboxItem]:
    """Two doubts of alice, the older one first."""
    said = Turn("Maybe I prefer tea. Maybe I don't like cocoa.", session="s-1")
    return learning.learn(alice, said).waiting


def test_what_waits_is_listed_with_its_reason(studio: Studio, items: list[InboxItem]) -> None:
    page = studio.get("/inbox/").content.decode()
    assert "Maybe I prefer tea" in page and "not sure enough" in page and "57 %" in page
    assert "against" in page and "alice" in page
    assert "Nothing waits" not in page


def test_an_empty_inbox_says_what_would_be_in_it(studio: Studio) -> None:
    assert "Nothing waits for you" in studio.get("/inbox/").content.decode()
    filtered = studio.get("/inbox/?reason=instruction").content.decode()
    assert "Nothing matches these filters" in filtered


def test_accepting_a_row_tells_and_can_be_undone(studio: Studio, items: list[InboxItem]) -> None:
    item = items[0]
    answer = studio.post(
        "/inbox/decide/", {"accept": str(item.pk)}, target="inbox-main", at="/inbox/"
    )
    told = answer.content.decode()
    assert "Accepted: now a memory." in told and "data-undo" in told
    assert 'id="inbox-stats"' in told and str(item.pk) not in told.split("inbox-stats")[0]
    assert Memory.objects.get().content == "Maybe I prefer tea"
    undone = studio.post(
        "/inbox/decide/",
        {"action": "reopen", "ids": [str(item.pk)]},
        target="notices",
        at="/inbox/",
    )
    assert undone["HX-Retarget"] == "#inbox-main"
    assert "Waiting again." in undone.content.decode()
    item.refresh_from_db()
    assert item.state == "pending"


def test_selected_rows_are_rejected_together(studio: Studio, items: list[InboxItem]) -> None:
    ids = [str(item.pk) for item in items]
    answer = studio.post("/inbox/decide/", {"action": "reject", "ids": ids})
    assert (answer.status_code, answer["Location"]) == (303, "/inbox/")
    assert InboxItem.objects.filter(state="rejected").count() == 2
    assert "2 rejected." in studio.get("/inbox/").content.decode()
    again = studio.post("/inbox/decide/", {"action": "reject", "ids": ids}, target="inbox-main")
    assert "decided already" in again.content.decode()


def test_a_row_is_edited_and_accepted(studio: Studio, items: list[InboxItem]) -> None:
    item = items[0]
    page = studio.get(f"/inbox/?edit={item.pk}").content.decode()
    assert "row-form" in page
    path = f"/inbox/{item.pk}/accept/"
    fields: dict[str, Any] = {"content": "I prefer green tea", "type": "factual", "revision": 1}
    empty = studio.post(path, {**fields, "content": " "}, target="inbox-main", at="/inbox/")
    assert empty.status_code == 422 and "row-form" in empty.content.decode()
    stale = studio.post(path, {**fields, "revision": 9}, target="inbox-main", at="/inbox/")
    assert stale.status_code == 409
    studio.post(path, fields, target="inbox-main", at="/inbox/")
    assert Memory.objects.get().content == "I prefer green tea"


@pytest.mark.parametrize(
    "fields", [{}, {"action": "odd"}, {"action": "accept"}, {"accept": "odd"}, {"ids": ["x"]}]
)
def test_odd_decisions_change_nothing(
    studio: Studio, items: list[InboxItem], fields: dict[str, Any]
) -> None:
    answer = studio.post("/inbox/decide/", fields, target="inbox-main", at="/inbox/")
    assert answer.status_code in (200, 422)
    assert InboxItem.objects.filter(state="pending").count() == 2


def test_the_list_takes_few_statements(
    studio: Studio, alice: Principal, django_assert_max_num_queries: Any
) -> None:
    for n in range(30):
        learning.learn(alice, Turn(f"Maybe I like tea number {n}."))
    with django_assert_max_num_queries(14):
        assert "number 29" in studio.get("/inbox/").content.decode()


SAID = "My name is Ada. Maybe I like tea. My boss says I always lie."


def test_a_turn_is_tried_and_nothing_is_kept(studio: Studio) -> None:
    fields = {"text": SAID, "role": "user"}
    told = studio.post("/playground/extract/", fields).content.decode()
    assert "identity:name" in told and "somebody else says so" in told
    assert Memory.objects.count() == InboxItem.objects.count() == 0
    part = studio.post("/playground/extract/", fields, target="playground-extract")
    assert part.content.decode().lstrip().startswith("<section")


def test_a_turn_is_stored_on_request(studio: Studio) -> None:
    fields = {"text": SAID, "role": "user", "store": "1"}
    assert "Stored for the key" in studio.post("/playground/extract/", fields).content.decode()
    assert Memory.objects.get().content == "My name is Ada"
    assert InboxItem.objects.get().content == "Maybe I like tea"


def test_an_empty_turn_and_one_that_teaches_nothing_are_told(studio: Studio) -> None:
    empty = studio.post("/playground/extract/", {"text": "", "role": "user"})
    assert empty.status_code == 422
    nothing = studio.post("/playground/extract/", {"text": "What time is it?", "role": "user"})
    assert "Nothing here says something" in nothing.content.decode()


def test_a_secret_is_not_shown_again_among_what_was_held_back(studio: Studio) -> None:
    fields = {"text": "Remember that my password is hunter2-Blue.", "role": "user"}
    told = studio.post("/playground/extract/", fields).content.decode()
    assert "a secret" in told
    assert "hunter2" not in told.split("Held back")[1]


def test_the_playground_has_the_panel(studio: Studio) -> None:
    assert 'id="playground-extract"' in studio.get("/playground/").content.decode()


def test_settings_of_learning_are_saved_and_refused(studio: Studio) -> None:
    fields = {"reads_replies": "on", "model": "lab/small", "daily_tokens": "900"}
    saved = studio.post("/inbox/settings/", fields)
    assert (saved.status_code, saved["Location"]) == (303, "/inbox/settings/")
    chosen = settings.get()
    assert (chosen.is_on, chosen.reads_replies) == (False, True)
    assert (chosen.model, chosen.daily_tokens) == ("lab/small", 900)
    bad = studio.post("/inbox/settings/", {**fields, "daily_tokens": "-1"})
    assert bad.status_code == 422
    assert "lab/small" in studio.get("/inbox/settings/").content.decode()
