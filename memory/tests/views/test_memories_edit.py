"""Writes from the tab Memories: at the field when refused, with undo when done."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.tests.conftest import Remember
from memory.tests.views.conftest import Studio

MAIN = "memories-main"
NEW = {"key": "tea", "content": "likes tea", "type": "factual", "metadata": '{"source": "me"}'}


def owner_of(name: str) -> str:
    return str(ApiKey.objects.get(name=name).uid)


def undo_of(body: str) -> tuple[str, dict[str, list[str]]]:
    """Address and fields of the notice's undo form."""
    form = re.search(r'data-notice>.*?<form[^>]*action="([^"]+)"(.*?)</form>', body, re.S)
    assert form is not None, body
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'name="(action|ids)"\s+value="([^"]*)"', form[2]):
        fields.setdefault(name, []).append(value)
    return form[1], fields


def test_a_memory_is_added_from_the_dialog(studio: Studio, alice: Principal) -> None:
    data = NEW | {"owner": owner_of("alice"), "is_pinned": "on"}
    response = studio.post("/memories/add/", data, target="dialog")
    body = response.content.decode()
    assert response["HX-Trigger"] == "dialog-close"
    assert response["HX-Retarget"] == "#memories-main"
    assert "Memory added." in body
    memory = Memory.objects.get()
    assert (memory.api_key.name, memory.is_pinned) == ("alice", True)
    assert memory.metadata == {"source": "me"}


def test_a_memory_is_added_without_javascript(studio: Studio) -> None:
    response = studio.post("/memories/add/", NEW | {"owner": owner_of("Default")})
    assert (response.status_code, response["Location"]) == (303, "/")
    assert "Memory added." in studio.text("/")
    assert "Memory added." not in studio.text("/")


def test_a_key_that_exists_is_updated_and_the_notice_says_so(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes coffee", key="tea")
    data = NEW | {"owner": owner_of("alice")}
    body = studio.post("/memories/add/", data, target="dialog").content.decode()
    assert "existed already; it was updated" in body
    url, _fields = undo_of(body)
    studio.post(url, target="notices")
    assert Memory.objects.get().content == "likes coffee"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("content", "  ", "This field is required."),
        ("key", "", "This field is required."),
        ("key", "k" * 501, "at most 500 characters"),
        ("metadata", "{not json", "This is not valid JSON."),
        ("metadata", "[1]", "A JSON object is needed"),
        ("type", "secret", "Select a valid choice"),
        ("owner", "nobody", "Select a valid choice"),
        ("content", "a\0b", "Null characters are not allowed."),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    studio: Studio, field: str, value: str, message: str
) -> None:
    data = NEW | {"owner": owner_of("Default"), field: value}
    response = studio.post("/memories/add/", data, target="dialog")
    body = response.content.decode()
    assert response.status_code == 422
    assert message in body
    assert f'aria-describedby="new-{field}_error"' in body
    assert not Memory.objects.exists()


def test_a_row_is_edited_in_place(studio: Studio, alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    assert 'id="row-form"' in studio.text(f"/?edit={memory.pk}", target=MAIN)
    data = {"content": "likes green tea", "type": "semantic", "revision": "1"}
    body = studio.post(
        f"/memories/{memory.pk}/row/", data, target=MAIN, at=f"/?q=tea&edit={memory.pk}"
    ).content.decode()
    assert "likes green tea" in body
    assert 'id="row-form"' not in body
    url, _fields = undo_of(body)
    studio.post(url, target="notices")
    memory.refresh_from_db()
    assert (memory.content, memory.type) == ("likes tea", "factual")


def test_an_empty_row_is_refused_in_the_row(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    response = studio.post(
        f"/memories/{memory.pk}/row/", {"content": "", "type": "factual"}, target=MAIN
    )
    assert response.status_code == 422
    assert "This field is required." in response.content.decode()


def edited(memory: Memory, **changes: Any) -> dict[str, Any]:
    fields = {"key": memory.key, "content": memory.content, "type": memory.type, "revision": "1"}
    return fields | changes


def test_every_field_is_edited_in_the_panel(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    changes = edited(
        memory,
        session_id="s-1",
        expires_at="2030-01-02T03:04",
        metadata=json.dumps({"a": 1}),
        is_shared="on",
    )
    response = studio.post(f"/memories/{memory.pk}/edit/", changes, target=MAIN)
    assert "Memory saved." in response.content.decode()
    memory.refresh_from_db()
    assert memory.expires_at is not None
    assert memory.expires_at.isoformat() == "2030-01-02T03:04:00+00:00"
    assert (memory.session_id, memory.metadata, memory.is_shared) == ("s-1", {"a": 1}, True)


def test_a_taken_key_is_a_conflict_at_its_field(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    remember(alice, "other", key="taken")
    memory = remember(alice, "likes tea")
    response = studio.post(f"/memories/{memory.pk}/edit/", edited(memory, key="taken"), target=MAIN)
    assert response.status_code == 409
    assert "Another memory of this owner has this key." in response.content.decode()


def test_a_stale_form_is_refused_once_and_then_meant(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    path = f"/memories/{memory.pk}/edit/"
    studio.post(path, edited(memory, content="someone else's"), target=MAIN)
    refused = studio.post(path, edited(memory, content="mine"), target=MAIN)
    assert refused.status_code == 409
    assert "Save again to replace" in refused.content.decode()
    assert 'name="revision" value="2"' in refused.content.decode()
    studio.post(path, edited(memory, content="mine", revision="2"), target=MAIN)
    memory.refresh_from_db()
    assert memory.content == "mine"


def test_deleting_many_can_be_undone(studio: Studio, alice: Principal, remember: Remember) -> None:
    ids = [str(remember(alice, f"fact {n}").pk) for n in range(3)]
    body = studio.post(
        "/memories/bulk/", {"action": "delete", "ids": ids}, target=MAIN
    ).content.decode()
    assert "3 memories deleted." in body
    assert Memory.objects.filter(trashed_at__isnull=False).count() == 3
    url, fields = undo_of(body)
    assert fields == {"action": ["restore"], "ids": ids}
    body = studio.post(url, fields, target="notices").content.decode()
    assert "3 memories restored." in body
    assert not Memory.objects.filter(trashed_at__isnull=False).exists()


def test_the_undo_survives_a_redirect(studio: Studio, alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    studio.post("/memories/bulk/", {"delete": str(memory.pk)})
    url, fields = undo_of(studio.text("/"))
    studio.post(url, fields)
    memory.refresh_from_db()
    assert memory.trashed_at is None


def test_pinning_many_can_be_undone(studio: Studio, alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    ids = [str(memory.pk)]
    body = studio.post(
        "/memories/bulk/", {"action": "pin", "ids": ids}, target=MAIN
    ).content.decode()
    memory.refresh_from_db()
    assert memory.is_pinned
    url, fields = undo_of(body)
    studio.post(url, fields, target="notices")
    memory.refresh_from_db()
    assert not memory.is_pinned


def test_erasing_for_ever_has_no_undo(studio: Studio, alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    ids = [str(memory.pk)]
    studio.post("/memories/bulk/", {"action": "delete", "ids": ids}, target=MAIN)
    assert "Delete for ever" in studio.text("/?state=trash", target=MAIN)
    body = studio.post("/memories/bulk/", {"action": "purge", "ids": ids}, target=MAIN)
    assert "data-undo" not in body.content.decode()
    assert not Memory.objects.exists()


def test_an_undo_that_collides_says_why(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea", key="tea")
    studio.post("/memories/bulk/", {"delete": str(memory.pk)}, target=MAIN)
    remember(alice, "likes mint tea", key="tea")
    body = studio.post("/memories/bulk/", {"restore": str(memory.pk)}, target=MAIN)
    assert "0 memories restored. 1 was left alone" in body.content.decode()


@pytest.mark.parametrize("data", [{"action": "explode"}, {"action": "delete"}])
def test_an_action_without_rows_or_sense_changes_nothing(
    studio: Studio, alice: Principal, remember: Remember, data: dict[str, str]
) -> None:
    remember(alice, "likes tea")
    response = studio.post("/memories/bulk/", data, target=MAIN)
    assert response.status_code in (200, 422)
    assert Memory.objects.filter(trashed_at__isnull=True).count() == 1


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example/", "javascript:x"])
def test_a_form_never_leads_to_another_site(studio: Studio, place: str) -> None:
    response = studio.post("/memories/bulk/", {"action": "delete", "next": place})
    assert response["Location"] == "/"
