"""The pages of the life of a vault: list, made, unlocked, locked, shared, erased."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import vault_wiring
from memory.models import Vault, VaultGrant
from memory.principal import SYSTEM, Principal
from memory.services.vaults import lifecycle
from memory.tests.vaults import PASSPHRASE, fill, opened, sealed
from memory.tests.views.conftest import Studio

pytestmark = pytest.mark.django_db
NEW: dict[str, Any] = {"name": "notes", "kind": "sealed", "auto_lock_minutes": 15}


def made(studio: Studio, **fields: Any) -> Any:
    owner = re.search(r'<option value="([0-9a-f-]{36})" selected', studio.text("/vaults/add/"))
    assert owner is not None
    return studio.post("/vaults/add/", NEW | {"owner": owner[1]} | fields)


def path_of(vault: Vault, rest: str = "") -> str:
    return f"/vaults/{vault.uid}/{rest}"


def test_the_recovery_key_of_a_new_vault_is_shown_once(studio: Studio) -> None:
    answer = made(studio, passphrase=PASSPHRASE)
    shown = re.search(r'id="secret"[^>]*value="([^"]+)"', answer.content.decode())
    assert answer.status_code == 200 and shown is not None
    assert answer["Cache-Control"] == "no-store"
    vault = Vault.objects.get(name="notes")
    assert vault.is_sealed and lifecycle.is_unlocked(vault)
    lifecycle.lock(SYSTEM, str(vault.uid))
    assert shown[1] not in studio.text(path_of(vault))
    opening = {"recovery_key": shown[1]}
    assert studio.post(path_of(vault, "unlock/"), opening).status_code == 303
    assert lifecycle.is_unlocked(Vault.objects.get(pk=vault.pk))


def test_a_weak_passphrase_and_a_taken_name_are_told_at_their_fields(studio: Studio) -> None:
    weak = made(studio, passphrase="short")
    assert weak.status_code == 422 and "vault-new-passphrase_error" in weak.content.decode()
    assert "short" not in weak.content.decode().replace("shortcuts", "")
    assert made(studio, kind="open").status_code == 303
    taken = made(studio, kind="open")
    assert taken.status_code == 409 and "vault-new-name_error" in taken.content.decode()


def test_the_list_tells_state_and_counts_in_few_queries(studio: Studio, alice: Principal) -> None:
    library = opened(alice)
    fill(alice, library)
    studio.text("/vaults/")
    with CaptureQueriesContext(
        connection,
    ) as few:
        page = studio.text("/vaults/")
    lifecycle.lock(alice, str(sealed(alice, is_device_only=True).uid))
    sealed(alice, "more", auto_lock_minutes=7)
    with CaptureQueriesContext(connection) as many:
        full = studio.text("/vaults/")
    assert len(many) == len(few) and "library" in page
    for text in ("sealed, locked", "sealed, unlocked", "locks itself in 7 min", "device only"):
        assert text in full
    assert re.search(r'data-label="Documents">\s*3\s*<', full)


def test_a_locked_vault_shows_what_opens_it_and_nothing_else(
    studio: Studio, alice: Principal
) -> None:
    vault = sealed(alice)
    fill(alice, vault)
    assert "Refund policy" in studio.text(path_of(vault))
    locked = studio.post(path_of(vault, "lock/"))
    assert (locked.status_code, locked["Location"]) == (303, "/vaults/")
    page = studio.text(path_of(vault))
    assert "This vault is locked" in page and "Refund policy" not in page
    away = studio.post(path_of(vault, "search/"), {"q": "refund"})
    assert away.status_code == 422 or away["Location"] == path_of(vault)
    wrong = studio.post(path_of(vault, "unlock/"), {"passphrase": "not this one"})
    assert wrong.status_code == 403 and "not this one" not in wrong.content.decode()
    assert "unlock-passphrase_error" in wrong.content.decode()


def test_a_new_passphrase_gives_a_new_recovery_key(studio: Studio, alice: Principal) -> None:
    vault = sealed(alice)
    changed = {"passphrase": PASSPHRASE, "new_passphrase": "another long one"}
    answer = studio.post(path_of(vault, "passphrase/"), changed)
    assert answer.status_code == 200 and 'id="secret"' in answer.content.decode()
    again = studio.post(path_of(vault, "passphrase/"), changed)
    assert again.status_code == 403


def test_grants_are_given_shown_and_revoked(
    studio: Studio, alice: Principal, bob: Principal
) -> None:
    vault = opened(alice)
    rules = studio.text(path_of(vault, "rules/"))
    other = re.search(r'<option value="([0-9a-f-]{36})"[^>]*>bob<', rules)
    assert other is not None
    given = {"key": other[1], "role": "writer"}
    assert studio.post(path_of(vault, "grants/"), given).status_code == 303
    assert VaultGrant.objects.get(vault=vault).role == "writer"
    past = given | {"expires_at": "2001-01-01T00:00"}
    assert "grant-expires_at_error" in studio.post(path_of(vault, "grants/"), past).content.decode()
    assert "writer" in studio.text(path_of(vault, "rules/"))
    assert studio.post(path_of(vault, f"grants/{other[1]}/revoke/")).status_code == 303
    assert not VaultGrant.objects.exists()


def test_rules_are_changed_and_a_vault_is_erased_by_its_name(
    studio: Studio, alice: Principal
) -> None:
    vault = opened(alice)
    values = {"name": "renamed", "auto_lock_minutes": 0, "is_device_only": "on"}
    assert studio.post(path_of(vault, "rules/"), values).status_code == 303
    vault.refresh_from_db()
    assert (vault.name, vault.auto_lock_minutes, vault.is_device_only) == ("renamed", 0, True)
    odd = studio.post(path_of(vault, "rules/"), values | {"auto_lock_minutes": 9999})
    assert odd.status_code == 422
    assert studio.post(path_of(vault, "remove/"), {"name": "library"}).status_code == 422
    assert studio.post(path_of(vault, "remove/"), {"name": "renamed"}).status_code == 303
    assert not Vault.objects.exists()


def test_no_page_of_a_vault_is_kept_by_a_cache(studio: Studio, alice: Principal) -> None:
    vault = opened(alice)
    for rest in ("", "unlock/", "passphrase/", "rules/", "add/", "ingest/", "ask/"):
        assert studio.get(path_of(vault, rest))["Cache-Control"] == "no-store"
    missing = studio.get(path_of(Vault()))
    assert missing.status_code == 404 and missing["Cache-Control"] == "no-store"


def test_a_vault_goes_out_as_a_file_and_comes_in_as_another(
    studio: Studio, alice: Principal
) -> None:
    vault, secret = sealed(alice), {"passphrase": "for the file only"}
    fill(alice, vault)
    assert studio.post(path_of(vault, "export/"), {"passphrase": "short"}).status_code == 422
    answer = studio.post(path_of(vault, "export/"), secret)
    assert "attachment" in answer["Content-Disposition"] and b"Refund" not in answer.content
    assert answer["Cache-Control"] == "no-store"

    def file() -> SimpleUploadedFile:
        return SimpleUploadedFile("notes.msvault", answer.content)

    wrong = {"passphrase": "not this one", "file": file()}
    assert studio.post("/vaults/import/", wrong).status_code == 403
    done = studio.post("/vaults/import/", secret | {"name": "copy", "file": file()})
    assert done.status_code == 200 and 'id="secret"' in done.content.decode()
    copy = Vault.objects.get(name="copy")
    assert "Refund policy" in studio.text(path_of(copy))
    lifecycle.lock(alice, str(vault.uid))
    locked = studio.post(path_of(vault, "export/"), secret)
    assert (locked.status_code, locked["Location"]) == (303, path_of(vault))
    broken = SimpleUploadedFile("b.msvault", answer.content[:-9])
    bad = studio.post("/vaults/import/", secret | {"name": "b", "file": broken})
    assert bad.status_code == 422 and not Vault.objects.filter(name="b").exists()


def test_an_open_page_hears_of_a_lock_and_asking_is_no_use_of_the_vault(
    studio: Studio, alice: Principal
) -> None:
    vault = sealed(alice, auto_lock_minutes=1)
    left: list[float] = []
    for asked in ("watch/", "watch/", "watch/?typed=1"):
        assert studio.get(path_of(vault, asked)).status_code == 204
        left.append(vault_wiring.keeper().seconds_left(str(vault.uid)) or 0.0)
    assert left[0] > left[1] and left[2] > left[1]
    lifecycle.lock(alice, str(vault.uid))
    answer = studio.get(path_of(vault, "watch/"), target="vault-watch")
    assert answer["HX-Redirect"] == path_of(vault)
    assert studio.get(path_of(opened(alice), "watch/")).status_code == 204
