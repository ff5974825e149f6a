"""Webhooks in the studio, with and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memory.models import Webhook, WebhookDelivery
from memory.principal import SYSTEM
from memory.tests.conftest import Remember, Work
from memory.tests.receiver import Receiver, receiving
from memory.tests.views.conftest import Studio

FIELDS = {
    "name": "app",
    "url": "https://receiver.example/hook?token=concealed",
    "events": ["memory.created", "job.finished"],
    "owner": "",
}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that takes what is signed."""
    with receiving() as one:
        yield one


def test_a_webhook_is_made_and_its_secret_is_shown_once(studio: Studio) -> None:
    assert "There is none yet." in studio.text("/engine/webhooks/")
    response = studio.post("/engine/webhooks/add/", FIELDS, target="dialog")
    body = response.content.decode()
    assert "whsec_" in body
    assert response["Cache-Control"] == "no-store"
    hook = Webhook.objects.get()
    assert (hook.owner, hook.events, hook.include_content) == (
        None,
        ["memory.created", "job.finished"],
        False,
    )
    listed = studio.text("/engine/webhooks/")
    assert "receiver.example" in listed
    assert "concealed" not in listed, "what follows the host may be a secret"


def test_what_is_wrong_stands_at_its_field(studio: Studio) -> None:
    fields = FIELDS | {"url": "http://169.254.169.254/"}
    response = studio.post("/engine/webhooks/add/", fields, target="dialog")
    assert response.status_code == 422
    assert 'id="hook-url_error"' in response.content.decode()
    assert "This address may not be called" in response.content.decode()


def test_a_webhook_is_changed_switched_renewed_and_removed(
    studio: Studio, receiver: Receiver
) -> None:
    hook = receiver.of(SYSTEM)
    path = f"/engine/webhooks/{hook.pk}/"
    changed = studio.post(path, FIELDS | {"name": "other"})
    assert (changed.status_code, changed["Location"]) == (303, path)
    assert "Webhook saved." in studio.text(path)
    studio.post(f"{path}switch/", {"enabled": "0"})
    assert "It was switched off here." in studio.text(path)
    studio.post(f"{path}switch/", {"enabled": "1"})
    assert "whsec_" in studio.post(f"{path}rotate/", target="dialog").content.decode()
    gone = studio.post(f"{path}remove/", target="main")
    assert gone["HX-Redirect"] == "/engine/webhooks/"
    assert studio.get(path).status_code == 404
    refused = studio.post("/engine/webhooks/add/", FIELDS | {"events": []})
    assert refused.status_code == 422


def test_a_test_tells_what_came_of_it(studio: Studio, receiver: Receiver) -> None:
    hook = receiver.of(SYSTEM)
    path = f"/engine/webhooks/{hook.pk}/"
    studio.post(f"{path}test/")
    assert "The test arrived; the receiver answered 204" in studio.text(path)
    receiver.provider.release.set()
    Webhook.objects.filter(pk=hook.pk).update(url="http://127.0.0.1:1/")
    studio.post(f"{path}test/")
    body = studio.text(path)
    assert "The test did not arrive: no connection" in body
    assert "1 time in a row: no connection" in body


def test_the_log_shows_what_was_sent_and_sends_it_again(
    studio: Studio, receiver: Receiver, remember: Remember, work: Work
) -> None:
    hook = receiver.of(SYSTEM)
    remember(SYSTEM, "likes tea")
    path = f"/engine/webhooks/{hook.pk}/"
    assert "chip-pending" in studio.text(path)
    work()
    row = WebhookDelivery.objects.get()
    body = studio.text(path)
    assert f'id="again-{row.uid}"' in body
    assert row.message_id in body
    response = studio.post(f"/engine/webhooks/deliveries/{row.uid}/again/")
    assert response["Location"] == path
    work()
    assert receiver.ids == [row.message_id] * 2
