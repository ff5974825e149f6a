"""The Engine page: going back to the earlier model, and dropping its index."""

from __future__ import annotations

import pytest

from memory.principal import Principal
from memory.services import settings as studio_settings
from memory.tests.conftest import Remember, Work
from memory.tests.views.conftest import Studio


@pytest.fixture
def switched(alice: Principal, manager: Principal, remember: Remember, work: Work) -> Principal:
    """Alice with a memory, first embedded by the default model, now by the light one."""
    remember(alice, "likes tea")
    work()
    studio_settings.update(manager, {"localModel": "use-multilingual"})
    work()
    return alice


def test_the_page_rolls_back_and_shows_the_settings_again(
    switched: Principal, studio: Studio
) -> None:
    page = studio.text("/engine/")
    assert "Roll back" in page
    assert "100.0 % of it is up to date." in page
    answer = studio.post("/engine/rollback/", target="engine-work")
    assert "Back to the model fake-e5." in answer.content.decode()
    assert "source-changed" in answer["HX-Trigger"]
    assert studio_settings.get().local_model == "multilingual-e5-small"


def test_the_page_says_when_something_is_embedded_first(
    switched: Principal, studio: Studio, remember: Remember, work: Work
) -> None:
    remember(switched, "likes juice")
    work()
    body = studio.post("/engine/rollback/", target="engine-work").content.decode()
    assert "Going back to fake-e5 as soon as what changed meanwhile is embedded." in body
    assert "Stop building" in body
    assert "Drop it now" not in body
    work()
    assert "Roll back" in studio.text("/engine/")


def test_the_page_drops_the_earlier_index(switched: Principal, studio: Studio) -> None:
    body = studio.post("/engine/retired/drop/", target="engine-work").content.decode()
    assert "The earlier index is dropped." in body
    assert "Roll back" not in body


def test_a_page_without_scripts_comes_back_with_the_notice(
    switched: Principal, studio: Studio
) -> None:
    assert studio.post("/engine/rollback/").status_code == 303
    assert "Back to the model fake-e5." in studio.text("/engine/")


def test_without_an_earlier_index_the_page_says_so(studio: Studio) -> None:
    answer = studio.post("/engine/rollback/", target="engine-work")
    assert answer.status_code == 404
    assert "There is no earlier index to go back to." in answer.content.decode()
