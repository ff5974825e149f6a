"""Vaults out of one machine and into another."""

from __future__ import annotations

import io
from typing import Any

import pytest

from engine.vault.errors import VaultError
from memory.errors import Conflict, Invalid
from memory.models import Vault, VaultAsset
from memory.principal import Principal
from memory.services.vaults import assets, lifecycle, parcels, searching
from memory.services.vaults.assets import AssetDraft
from memory.services.vaults.parcels import Destination
from memory.tests.vaults import fill, query, sealed

pytestmark = pytest.mark.django_db(transaction=True)
FILE_PASSPHRASE = "for the journey only"


def exported(principal: Principal, vault: Vault) -> bytes:
    file = io.BytesIO()
    parcels.write(principal, str(vault.uid), file, FILE_PASSPHRASE)
    return file.getvalue()


def imported(principal: Principal, data: bytes, **where: Any) -> parcels.Received:
    file = io.BytesIO(data)
    return parcels.read(principal, file, FILE_PASSPHRASE, Destination(**where))


def whole(principal: Principal, vault: Vault) -> dict[str, Any]:
    rows = VaultAsset.objects.filter(vault=vault, trashed_at__isnull=True)
    name = str(vault.uid)
    found = [assets.read(principal, name, str(row.pk))[0] for row in rows]
    return {item.content.title: item.content for item in found}


@pytest.fixture
def vault(alice: Principal) -> Vault:
    made = sealed(alice)
    fill(alice, made)
    draft = AssetDraft("hunter2", "Mail", "credential", {"user": "ana"}, "mail.txt")
    stored = assets.put(alice, "notes", draft)
    assets.revise(alice, "notes", str(stored.asset.pk), {"body": "hunter3"})
    return made


def test_a_vault_comes_back_whole_with_its_revisions(alice: Principal, vault: Vault) -> None:
    data = exported(alice, vault)
    before = whole(alice, vault)
    assert b"hunter" not in data and b"Refund" not in data
    lifecycle.delete(alice, "notes")
    done = imported(alice, data)
    assert (done.created, done.revised, done.vault.name) == (4, 0, "notes")
    assert whole(alice, done.vault) == before
    mail = VaultAsset.objects.get(kind="credential")
    assert assets.read(alice, "notes", str(mail.pk), 1)[0].content.body == "hunter2"
    assert searching.find(alice, query(done.vault)).found
    lifecycle.lock(alice, "notes")
    lifecycle.unlock(alice, "notes", passphrase=FILE_PASSPHRASE)
    assert done.made is not None
    lifecycle.lock(alice, "notes")
    lifecycle.unlock(alice, "notes", recovery_key=done.made.recovery_key)


def test_a_file_is_merged_into_a_vault_that_is_there(alice: Principal, vault: Vault) -> None:
    searching.find(alice, query(vault))
    data = exported(alice, vault)
    card = VaultAsset.objects.filter(vault=vault, kind="card")[0]
    assets.revise(alice, "notes", str(card.pk), {"body": "Changed here."})
    gone = VaultAsset.objects.get(kind="memory")
    assets.delete(alice, "notes", str(gone.pk), purge=True)
    done = imported(alice, data, into="notes")
    assert (done.created, done.revised, done.unchanged) == (1, 1, 2)
    card.refresh_from_db()
    assert card.revision == 3
    assert searching.find(alice, query(vault, "Fridays")).found


def test_a_copy_beside_the_original_has_ids_of_its_own(alice: Principal, vault: Vault) -> None:
    done = imported(alice, exported(alice, vault), name="copy", is_open=True)
    assert (done.created, done.vault.is_sealed, done.made and done.made.recovery_key) == (
        4,
        False,
        "",
    )
    assert whole(alice, done.vault) == whole(alice, vault)
    with pytest.raises(Conflict):
        imported(alice, exported(alice, vault))


def test_a_damaged_file_changes_nothing(alice: Principal, vault: Vault) -> None:
    data = exported(alice, vault)
    for broken in (b"", b"x", data[:-1], data[:-30] + bytes([data[-30] ^ 1]) + data[-29:]):
        with pytest.raises(Invalid) as refused:
            imported(alice, broken, name="copy")
        assert refused.value.code == "sealed_damaged"
    with pytest.raises(VaultError) as wrong:
        parcels.read(alice, io.BytesIO(data), "not this one", Destination(name="copy"))
    assert wrong.value.code == "wrong_passphrase"
    assert [made.name for made in Vault.objects.all()] == ["notes"]
    assert VaultAsset.objects.count() == 4


def test_a_locked_vault_is_neither_written_nor_read_into(alice: Principal, vault: Vault) -> None:
    data = exported(alice, vault)
    lifecycle.lock(alice, "notes")
    for act in (lambda: exported(alice, vault), lambda: imported(alice, data, into="notes")):
        with pytest.raises(VaultError) as refused:
            act()
        assert refused.value.code == "vault_locked"
