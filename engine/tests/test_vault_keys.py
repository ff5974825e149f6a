from __future__ import annotations

import json

import pytest

from engine.vault import keys
from engine.vault.errors import VaultError
from engine.vault.keys import FLOOR, STANDARD, Cost, VaultKey
from engine.vault.sealing import Place, Sealer

VAULT = "0b8f"
PASSPHRASE = "correct horse バッテリー"
PLACE = Place(VAULT, "card-1", 1, "body")


def refusal(envelope: str, passphrase: str = PASSPHRASE, vault: str = VAULT) -> VaultError:
    with pytest.raises(VaultError) as refused:
        keys.unwrap(envelope, passphrase, vault=vault)
    return refused.value


@pytest.fixture(scope="module")
def key() -> VaultKey:
    return VaultKey.new()


@pytest.fixture(scope="module")
def envelope(key: VaultKey) -> str:
    return keys.wrap(key, PASSPHRASE, vault=VAULT, cost=FLOOR)


def test_a_passphrase_opens_what_it_closed(key: VaultKey, envelope: str) -> None:
    assert keys.unwrap(envelope, PASSPHRASE, vault=VAULT).secret == key.secret


def test_an_envelope_holds_neither_key_nor_passphrase(key: VaultKey, envelope: str) -> None:
    assert key.secret.hex() not in envelope
    assert PASSPHRASE not in envelope
    assert repr(key) == "VaultKey(…)"


def test_the_cost_is_that_of_rfc_9106_unless_a_test_asks_for_less(key: VaultKey) -> None:
    envelope = keys.wrap(key, PASSPHRASE, vault=VAULT)
    head = json.loads(envelope)
    assert (head["kdf"], head["memory_kib"], head["iterations"]) == ("argon2id", 65_536, 3)
    assert keys.is_current(envelope)
    assert keys.unwrap(envelope, PASSPHRASE, vault=VAULT).secret == key.secret


def test_a_wrong_passphrase_opens_nothing(envelope: str) -> None:
    assert refusal(envelope, "correct horse").code == "wrong_passphrase"
    assert refusal(envelope, "").code == "wrong_passphrase"
    assert refusal(envelope, "x" * 100_000).code == "wrong_passphrase"


def test_an_envelope_opens_no_other_vault(envelope: str) -> None:
    assert refusal(envelope, vault="another").code == "wrong_passphrase"


def test_composed_and_decomposed_passphrases_are_the_same(key: VaultKey) -> None:
    envelope = keys.wrap(key, "café au lait", vault=VAULT, cost=FLOOR)
    assert keys.unwrap(envelope, "cafe\u0301 au lait", vault=VAULT).secret == key.secret


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"memory_kib": 8}, "sealed_damaged"),
        ({"iterations": 1}, "sealed_damaged"),
        ({"lanes": 0}, "sealed_damaged"),
        ({"memory_kib": 1 << 30}, "sealed_damaged"),
        ({"memory_kib": True}, "sealed_damaged"),
        ({"iterations": "2"}, "sealed_damaged"),
        ({"iterations": 3}, "wrong_passphrase"),
        ({"salt": "AAAAAAAAAAAAAAAAAAAAAA=="}, "wrong_passphrase"),
        ({"salt": "!"}, "sealed_damaged"),
        ({"nonce": "AAAA"}, "sealed_damaged"),
        ({"key": "AAAA"}, "wrong_passphrase"),
        ({"v": 2}, "sealed_damaged"),
        ({"kdf": "sha1"}, "sealed_damaged"),
        ({"added": 1}, "wrong_passphrase"),
    ],
)
def test_a_changed_envelope_is_refused(
    changed: dict[str, object], code: str, envelope: str
) -> None:
    assert refusal(json.dumps({**json.loads(envelope), **changed})).code == code


@pytest.mark.parametrize("envelope", ["", "x", "[]", "{}", "[" * 5000])
def test_what_is_no_envelope_is_refused(envelope: str) -> None:
    assert refusal(envelope).code == "sealed_damaged"


def test_a_cheaper_envelope_than_the_standard_is_told(envelope: str) -> None:
    assert not keys.is_current(envelope)
    assert FLOOR.work < STANDARD.work == Cost(65_536, 3, 4).work


@pytest.mark.parametrize("passphrase", ["", "short", "e\u0301" * 7, "x" * 2000])
def test_a_new_passphrase_has_a_sensible_length(passphrase: str, key: VaultKey) -> None:
    with pytest.raises(VaultError) as refused:
        keys.wrap(key, passphrase, vault=VAULT, cost=FLOOR)
    assert refused.value.code == "weak_passphrase"


def test_a_recovery_key_opens_the_vault_however_it_is_typed(key: VaultKey) -> None:
    recovery = keys.new_recovery()
    envelope = keys.wrap_recovery(key, recovery, vault=VAULT)
    assert len(recovery) == 47
    for typed in (recovery, recovery.lower(), f" {recovery.replace('-', ' ')}\n"):
        assert keys.unwrap_recovery(envelope, typed, vault=VAULT).secret == key.secret
    with pytest.raises(VaultError) as refused:
        keys.unwrap_recovery(envelope, keys.new_recovery(), vault=VAULT)
    assert refused.value.code == "wrong_passphrase"


def test_a_new_passphrase_leaves_the_sealed_rows_as_they_are(key: VaultKey, envelope: str) -> None:
    sealed = Sealer(key).seal_text("text", PLACE)
    opened = keys.unwrap(envelope, PASSPHRASE, vault=VAULT)
    again = keys.wrap(opened, "another passphrase", vault=VAULT, cost=FLOOR)
    opened.wipe()
    fresh = keys.unwrap(again, "another passphrase", vault=VAULT)
    assert Sealer(fresh).open_text(sealed, PLACE) == "text"
    assert refusal(again).code == "wrong_passphrase"


def test_a_wiped_key_seals_and_opens_nothing() -> None:
    key = VaultKey.new()
    sealer = Sealer(key)
    sealed = sealer.seal_text("text", PLACE)
    sealer.wipe()
    for use in (lambda: sealer.open_text(sealed, PLACE), lambda: key.secret):
        with pytest.raises(VaultError) as refused:
            use()
        assert refused.value.code == "vault_locked"


def test_the_same_text_is_sealed_differently_each_time(key: VaultKey) -> None:
    sealer = Sealer(key)
    assert sealer.seal_text("text", PLACE) != sealer.seal_text("text", PLACE)


@pytest.mark.parametrize(
    "elsewhere",
    [
        Place(VAULT, "card-2", 1, "body"),
        Place(VAULT, "card-1", 2, "body"),
        Place(VAULT, "card-1", 1, "title"),
        Place("other", "card-1", 1, "body"),
        Place(VAULT + "card-1", "", 1, "body"),
        Place(VAULT, "card-", 11, "body"),
    ],
)
def test_a_sealed_text_opens_in_its_own_place_only(elsewhere: Place, key: VaultKey) -> None:
    sealer = Sealer(key)
    sealed = sealer.seal_text("text", PLACE)
    with pytest.raises(VaultError) as refused:
        sealer.open_text(sealed, elsewhere)
    assert refused.value.code == "sealed_damaged"
    assert sealer.open_text(sealed, PLACE) == "text"


def test_every_changed_byte_is_noticed(key: VaultKey) -> None:
    sealer = Sealer(key)
    sealed = sealer.seal_text("text", PLACE)
    for place in range(len(sealed)):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises(VaultError):
            sealer.open_text(changed, PLACE)
    for cut in range(len(sealed)):
        with pytest.raises(VaultError):
            sealer.open_text(sealed[:cut], PLACE)


def test_another_key_opens_nothing(key: VaultKey) -> None:
    sealed = Sealer(key).seal_text("text", PLACE)
    with pytest.raises(VaultError):
        Sealer(VaultKey.new()).open_text(sealed, PLACE)
