"""Passes for commands on the machine itself: signed, for a minute, as strong as what they name."""

from __future__ import annotations

import time

import pytest

from memory.errors import NotFound, Unauthorized
from memory.principal import ALL_SCOPES, SYSTEM, Principal
from memory.services import keys


def test_a_pass_without_a_key_is_for_every_owner(first_start: None) -> None:
    caller = keys.authenticate(keys.local_pass())
    assert (caller.kind, caller.owner, caller.scopes) == ("studio", None, ALL_SCOPES)


def test_a_pass_for_a_key_is_that_key(alice: Principal) -> None:
    assert keys.authenticate(keys.local_pass("alice")) == alice
    keys.revoke(SYSTEM, "alice")
    with pytest.raises(Unauthorized):
        keys.authenticate(keys.local_pass("alice"))
    with pytest.raises(NotFound):
        keys.authenticate(keys.local_pass("nobody"))


def test_a_pass_that_was_changed_or_signed_elsewhere_is_worth_nothing(first_start: None) -> None:
    good = keys.local_pass()
    for bad in (good[:-1], keys.LOCAL_PREFIX, f"{keys.LOCAL_PREFIX}e30:1:x", good.swapcase()):
        with pytest.raises(Unauthorized):
            keys.authenticate(bad)


def test_a_pass_is_good_for_a_minute(first_start: None, monkeypatch: pytest.MonkeyPatch) -> None:
    given = keys.local_pass()
    later = time.time() + 61
    monkeypatch.setattr("django.core.signing.time.time", lambda: later)
    with pytest.raises(Unauthorized):
        keys.authenticate(given)
