"""The life of a vault: who may open it, and that a lock holds at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db.models import F

from engine.vault.errors import VaultError
from memory import vault_wiring
from memory.clock import now
from memory.errors import ServiceError
from memory.models import AuditEntry, Vault, VaultGrant
from memory.principal import Principal
from memory.services import keys
from memory.services.vaults import access, assets, grants, lifecycle, searching
from memory.services.vaults.access import Watch
from memory.services.vaults.lifecycle import VaultDraft
from memory.tests.vaults import PASSPHRASE, fill, opened, query, sealed

pytestmark = pytest.mark.django_db(transaction=True)


def code_of(act: Callable[[], object]) -> str:
    try:
        act()
    except (VaultError, ServiceError) as refused:
        return refused.code
    return ""


def test_a_sealed_vault_opens_by_passphrase_or_recovery_key_and_by_nothing_else(
    alice: Principal,
) -> None:
    made = lifecycle.create(alice, VaultDraft("notes", passphrase=PASSPHRASE))
    name = str(made.vault.uid)
    assert lifecycle.is_unlocked(made.vault)
    locked = lifecycle.lock(alice, name)
    assert not lifecycle.is_unlocked(locked)
    assert code_of(lambda: searching.find(alice, query(made.vault))) == "vault_locked"
    wrong = {"passphrase": "another passphrase"}
    assert code_of(lambda: lifecycle.unlock(alice, name, **wrong)) == "wrong_passphrase"
    assert code_of(lambda: lifecycle.unlock(alice, name, recovery_key="x")) == "wrong_passphrase"
    assert code_of(lambda: lifecycle.unlock(alice, name)) == "invalid"
    assert lifecycle.is_unlocked(lifecycle.unlock(alice, name, passphrase=PASSPHRASE))
    lifecycle.lock(alice, name)
    assert lifecycle.is_unlocked(lifecycle.unlock(alice, name, recovery_key=made.recovery_key))


def test_a_new_passphrase_voids_the_old_one_and_the_old_recovery_key(alice: Principal) -> None:
    made = lifecycle.create(alice, VaultDraft("notes", passphrase=PASSPHRASE))
    name, fresh = str(made.vault.uid), "a fresh passphrase"
    fill(alice, made.vault)
    weak = {"passphrase": PASSPHRASE}
    assert code_of(lambda: lifecycle.change_passphrase(alice, name, "short", **weak)) == (
        "weak_passphrase"
    )
    recovery = lifecycle.change_passphrase(alice, name, fresh, recovery_key=made.recovery_key)
    lifecycle.lock(alice, name)
    for old in ({"passphrase": PASSPHRASE}, {"recovery_key": made.recovery_key}):
        assert code_of(partial(lifecycle.unlock, alice, name, **old)) == "wrong_passphrase"
    lifecycle.unlock(alice, name, recovery_key=recovery)
    assert searching.find(alice, query(made.vault)).found


def test_guesses_are_slowed_down(alice: Principal) -> None:
    vault = lifecycle.lock(alice, str(sealed(alice).uid))
    name = str(vault.uid)
    codes = [code_of(lambda: lifecycle.unlock(alice, name, recovery_key="guess")) for _ in range(6)]
    assert codes == ["wrong_passphrase"] * 5 + ["rate_limited"]


def test_a_lock_in_another_process_holds_here(alice: Principal) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    searching.find(alice, query(vault))
    Vault.objects.update(lock_generation=F("lock_generation") + 1)
    assert code_of(lambda: searching.find(alice, query(vault))) == "vault_locked"
    assert vault_wiring.keeper().unlocked() == []
    assert vault_wiring.keeper().cached == 0


def test_a_lock_erases_every_index_and_a_restart_every_key(alice: Principal) -> None:
    first, second = sealed(alice), sealed(alice, "more")
    for vault in (first, second):
        fill(alice, vault)
        searching.prepare(alice, str(vault.uid))
    keeper = vault_wiring.keeper()
    assert keeper.cached == 2
    lifecycle.lock(alice, str(first.uid))
    assert keeper.cached == 0
    assert searching.find(alice, query(second)).found
    vault_wiring.reset()
    assert (keeper.cached, lifecycle.is_unlocked(first)) == (0, False)


def test_every_part_of_a_locked_vault_is_refused(alice: Principal) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    asset = str(vault.assets.all()[0].pk)
    name = str(lifecycle.lock(alice, str(vault.uid)).uid)
    acts: list[Callable[[], object]] = [
        lambda: assets.list_page(alice, name),
        lambda: assets.read(alice, name, asset),
        lambda: assets.revisions(alice, name, asset),
        lambda: assets.ingest_file(alice, name, b"text", name="a.md"),
        lambda: assets.revise(alice, name, asset, {"title": "x"}),
        lambda: searching.prepare(alice, name),
        lambda: searching.find(alice, query(vault)),
    ]
    assert [code_of(act) for act in acts] == ["vault_locked"] * len(acts)
    assert not searching.status(alice, name).is_unlocked


def test_where_no_process_keeps_keys_sealed_vaults_say_so(alice: Principal, settings: Any) -> None:
    vault, plain = sealed(alice), opened(alice)
    fill(alice, plain)
    settings.MEMORY_STUDIO_KEEPS_VAULTS = False
    assert code_of(lambda: sealed(alice, "other")) == "needs_embedded"
    unlock = {"passphrase": PASSPHRASE}
    assert code_of(lambda: lifecycle.unlock(alice, str(vault.uid), **unlock)) == "needs_embedded"
    assert code_of(lambda: searching.find(alice, query(vault))) == "needs_embedded"
    assert searching.find(alice, query(plain)).found


def test_only_those_with_a_grant_know_of_a_vault(
    alice: Principal, bob: Principal, manager: Principal
) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    assert code_of(lambda: searching.find(bob, query(vault))) == "vault_not_found"
    assert lifecycle.list_vaults(bob) == []
    assert [found.pk for found in lifecycle.list_vaults(manager)] == [vault.pk]
    grants.give(alice, "notes", "bob", "reader")
    assert searching.find(bob, query(vault)).found
    assert [found.pk for found in lifecycle.list_vaults(bob)] == [vault.pk]
    write = {"name": "a.md"}
    name = str(vault.uid)
    assert code_of(lambda: assets.ingest_file(bob, name, b"x", **write)) == "not_authorized"
    assert code_of(lambda: grants.give(bob, name, "bob", "manager")) == "not_authorized"
    grants.give(alice, "notes", "bob", "writer")
    assert assets.ingest_file(bob, name, b"x", **write).outcome == "created"
    grants.revoke(alice, "notes", "bob")
    assert code_of(lambda: searching.find(bob, query(vault))) == "vault_not_found"
    assert code_of(lambda: grants.revoke(alice, "notes", "bob")) == "not_found"


def test_a_grant_ends_at_its_time(alice: Principal, bob: Principal) -> None:
    vault = opened(alice)
    fill(alice, vault)
    past = now() - timedelta(seconds=1)
    assert (
        code_of(lambda: grants.give(alice, "library", "bob", "reader", expires_at=past))
        == "invalid"
    )
    grants.give(alice, "library", "bob", "reader", expires_at=now() + timedelta(hours=1))
    assert searching.find(bob, query(vault)).found
    VaultGrant.objects.update(expires_at=past)
    assert code_of(lambda: searching.find(bob, query(vault))) == "vault_not_found"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"lock_generation": F("lock_generation") + 1}, "vault_locked"),
        ({"policy_revision": F("policy_revision") + 1}, "cancelled"),
        ({"revision": F("revision") + 1}, "source_changed"),
    ],
)
def test_work_that_began_before_a_change_is_void(
    change: dict[str, Any], code: str, alice: Principal
) -> None:
    watch = Watch(alice, sealed(alice))
    watch()
    Vault.objects.update(**change)
    assert code_of(watch) == code


def test_work_ends_with_the_grant_the_key_or_the_vault(
    alice: Principal, bob: Principal, manager: Principal
) -> None:
    vault = opened(alice)
    grants.give(alice, "library", "bob", "reader")
    vault.refresh_from_db()
    of_grant, of_vault = Watch(bob, vault), Watch(manager, vault)
    of_key = Watch(alice, vault)
    VaultGrant.objects.all().delete()
    assert code_of(of_grant) == "not_authorized"
    keys.revoke(manager, "alice")
    assert code_of(of_key) == "not_authorized"
    Vault.objects.all().delete()
    assert code_of(of_vault) == "vault_not_found"


def test_names_and_rules_are_checked(alice: Principal, bob: Principal) -> None:
    vault = opened(alice)
    assert code_of(lambda: opened(alice)) == "conflict"
    assert opened(bob).name == vault.name
    assert code_of(lambda: opened(alice, "")) == "invalid"
    assert code_of(lambda: opened(alice, "x", auto_lock_minutes=2000)) == "invalid"
    assert code_of(lambda: lifecycle.update(alice, "library", {"name": "\0"})) == "invalid"
    bad = {"embedding_model": "nothing"}
    assert code_of(lambda: lifecycle.update(alice, "library", bad)) == "invalid"
    assert code_of(lambda: lifecycle.update(alice, "library", {"embedding_dim": 7})) == "invalid"
    before = vault.policy_revision
    changed = lifecycle.update(alice, "library", {"is_device_only": True, "name": "books"})
    assert (changed.is_device_only, changed.name) == (True, "books")
    assert changed.policy_revision == before + 1
    opened(alice, "second")
    assert code_of(lambda: lifecycle.update(alice, "second", {"name": "books"})) == "conflict"


def test_two_vaults_of_one_name_are_told_apart_by_their_ids(
    alice: Principal, bob: Principal, manager: Principal
) -> None:
    first, second = opened(alice), opened(bob)
    assert access.find(alice, "library", "reader") == first
    assert code_of(lambda: access.find(manager, "library", "reader")) == "vault_not_found"
    assert access.find(manager, str(second.uid), "reader") == second


def test_a_deleted_vault_is_gone_with_its_key(alice: Principal) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    lifecycle.delete(alice, str(vault.uid))
    assert vault_wiring.keeper().unlocked() == []
    assert code_of(lambda: searching.find(alice, query(vault))) == "vault_not_found"


def test_what_is_done_leaves_rows_of_ids_and_counts(alice: Principal) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    searching.find(alice, query(vault))
    lifecycle.lock(alice, "notes")
    lifecycle.unlock(alice, "notes", passphrase=PASSPHRASE)
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    mine = [action for action in actions if action.startswith("vault.")]
    assert mine == [
        "vault.create",
        *["vault.put"] * 3,
        "vault.search",
        "vault.lock",
        "vault.unlock",
    ]
    rows = str(list(AuditEntry.objects.values()))
    assert "refund" not in rows.lower() and PASSPHRASE not in rows
