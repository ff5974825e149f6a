"""The signature is that of the Standard Webhooks scheme, and the documentation tells how to check
it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from memory.clock import now
from memory.services.webhooks import signing

BODY = b'{"test": 2432232314}'


@pytest.fixture
def verify() -> Callable[[str, dict[str, str], bytes], bool]:
    """The function that the documentation shows."""
    page = (Path(settings.BASE_DIR) / "docs" / "webhooks.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)  # noqa: S102 - what our own page says
    checked: Callable[[str, dict[str, str], bytes], bool] = names["verify"]
    return checked


def test_the_example_of_the_specification_is_signed_as_it_says() -> None:
    made = signing.headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330, UTC),
        BODY,
    )
    assert made["webhook-timestamp"] == "1614265330"
    assert made["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_documented_check_takes_ours_and_nothing_else(
    verify: Callable[[str, dict[str, str], bytes], bool],
) -> None:
    secret, other = signing.new_secret(), signing.new_secret()
    headers = signing.headers(secret, "msg_1", now(), BODY)
    assert verify(secret, headers, BODY)
    assert not verify(other, headers, BODY)
    assert not verify(secret, headers, BODY + b" ")
    assert not verify(secret, {**headers, "webhook-id": "msg_2"}, BODY)
    old = signing.headers(secret, "msg_1", now() - timedelta(minutes=6), BODY)
    assert not verify(secret, old, BODY)
    several = {**headers, "webhook-signature": f"v1,AAAA {headers['webhook-signature']}"}
    assert verify(secret, several, BODY)


def test_a_secret_is_long_and_never_the_same() -> None:
    made = {signing.new_secret() for _place in range(100)}
    assert len(made) == 100
    assert {len(secret) for secret in made} == {len("whsec_") + 44}
