"""Which process keeps the keys of sealed vaults, and what the others say."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from engine.vault.errors import VaultError
from engine.vault.keeper import Keeper
from engine.vault.keys import VaultKey
from memory import vault_wiring
from memory.models import Vault
from memory.principal import Principal
from memory.services.vaults import lifecycle, searching, upkeep, whereabouts
from memory.tests.vaults import PASSPHRASE, fill, opened, query, sealed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def elsewhere(settings: Any) -> None:
    """Another process keeps the keys, and could not be asked."""
    settings.MEMORY_STUDIO_KEEPS_VAULTS = False
    settings.MEMORY_STUDIO_VAULTD = "http://vaultd:8001"


def test_what_another_process_locked_or_erased_is_forgotten(alice: Principal) -> None:
    kept, locked, gone = (sealed(alice, name) for name in ("kept", "locked", "gone"))
    fill(alice, locked)
    searching.prepare(alice, str(locked.uid))
    Vault.objects.filter(pk=locked.pk).update(lock_generation=F("lock_generation") + 1)
    Vault.objects.filter(pk=gone.pk).delete()
    assert sorted(upkeep.sweep()) == sorted([str(locked.uid), str(gone.uid)])
    assert vault_wiring.keeper().unlocked() == [str(kept.uid)]
    assert vault_wiring.keeper().cached == 0
    assert upkeep.sweep() == []
    upkeep.let_go()
    assert vault_wiring.keeper().unlocked() == []


def test_an_idle_vault_is_locked_without_anybody_asking(alice: Principal) -> None:
    vault, times = sealed(alice), [0.0]
    keeper = Keeper(clock=lambda: times[0])
    uid, number = str(vault.uid), vault.lock_generation
    keeper.unlock(uid, VaultKey.new(), generation=number, auto_lock_s=60)
    assert (upkeep.sweep(keeper), keeper.unlocked()) == ([], [uid])
    times[0] = 61
    assert (upkeep.sweep(keeper), keeper.unlocked()) == ([uid], [])


def test_a_vault_is_looked_up_by_whatever_names_it(alice: Principal, bob: Principal) -> None:
    vault, plain = sealed(alice, "notes"), opened(alice, "library")
    opened(bob, "notes")
    braced = f"{{{str(vault.uid).upper()}}}"
    for sealed_one in (str(vault.uid), "notes", braced):
        assert whereabouts.is_sealed(sealed_one) is True, "of any owner"
    assert whereabouts.is_sealed(str(plain.uid)) is whereabouts.is_sealed("library") is False
    for other in ("nothing", "\0", str(uuid.uuid4())):
        assert whereabouts.is_sealed(other) is None


@pytest.mark.usefixtures("elsewhere")
def test_what_needs_a_key_says_that_its_keeper_could_not_be_asked(alice: Principal) -> None:
    plain = opened(alice)
    fill(alice, plain)
    assert searching.find(alice, query(plain)).found
    with pytest.raises(VaultError) as refused:
        sealed(alice)
    assert refused.value.code == "vaultd_unavailable"


@pytest.mark.parametrize("place", ["http://vaultd:8001", ""])
def test_pages_say_why_sealed_vaults_stay_shut(
    alice: Principal, admin_client: Client, settings: Any, place: str
) -> None:
    vault, plain = sealed(alice), opened(alice)
    told = "(vaultd) does not answer" if place else "Sealed vaults need one process"
    for address in ("/vaults/", f"/vaults/{vault.uid}/"):
        assert told not in admin_client.get(address).content.decode()
    lifecycle.lock(alice, str(vault.uid))
    settings.MEMORY_STUDIO_KEEPS_VAULTS, settings.MEMORY_STUDIO_VAULTD = False, place
    listed = admin_client.get("/vaults/").content.decode()
    assert told in listed
    assert (f"lock-{vault.uid}" in listed, f"unlock-{vault.uid}" in listed) == (True, False)
    page = admin_client.get(f"/vaults/{vault.uid}/").content.decode()
    assert told in page
    assert "unlock-save" not in page
    assert told not in admin_client.get(f"/vaults/{plain.uid}/").content.decode()
    unlock = admin_client.post(f"/vaults/{vault.uid}/unlock/", {"passphrase": PASSPHRASE})
    assert (unlock.status_code, told in unlock.content.decode()) == (503, True)
    shown = admin_client.get("/vaults/unavailable/")
    assert (shown.status_code, "(vaultd) does not answer" in shown.content.decode()) == (503, True)
