from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from engine.vault import parcel
from engine.vault.errors import VaultError
from engine.vault.keys import FLOOR

PASSPHRASE = "for the journey"
RECORDS: Sequence[object] = [
    {"kind": "card", "title": "題", "body": "x" * 70_000},
    {"n": 2},
    [],
    "é",
]


def packed(records: Sequence[object] = RECORDS) -> bytes:
    file = io.BytesIO()
    parcel.write(records, file, PASSPHRASE, cost=FLOOR)
    return file.getvalue()


def unpacked(data: bytes, passphrase: str = PASSPHRASE) -> list[object]:
    return list(parcel.read(io.BytesIO(data), passphrase))


@pytest.mark.parametrize("records", [[], [{}], RECORDS, [{"n": n} for n in range(20_000)]])
def test_records_come_out_as_they_went_in(records: Sequence[object]) -> None:
    assert unpacked(packed(records)) == list(records)


def test_nothing_of_the_records_shows() -> None:
    data = packed([{"title": "MARKER-7f3a"}])
    assert b"MARKER" not in data
    assert PASSPHRASE.encode() not in data


def frames(data: bytes) -> tuple[bytes, list[bytes]]:
    head, _, rest = data.partition(b"\n")
    found: list[bytes] = []
    while rest:
        size = 4 + int.from_bytes(rest[:4], "big")
        found.append(rest[:size])
        rest = rest[size:]
    return head + b"\n", found


def damaged() -> dict[str, bytes]:
    data = packed()
    head, (first, last) = frames(data)
    return {
        "cut": data[:-1],
        "without its last frame": head + first,
        "without its first frame": head + last,
        "without frames": head,
        "a frame twice": head + first + first + last,
        "frames changed round": head + last + first,
        "one more frame": data + last,
        "one bit": data[:-20] + bytes([data[-20] ^ 1]) + data[-19:],
        "a huge length": head + b"\xff\xff\xff\xff" + first[4:],
        "empty": b"",
        "another file": b'{"file": "x"}\n',
        "text": b"hello\n" * 10,
    }


@pytest.mark.parametrize("how", list(damaged()))
def test_a_damaged_file_is_refused(how: str) -> None:
    with pytest.raises(VaultError) as refused:
        unpacked(damaged()[how])
    assert refused.value.code == "sealed_damaged"


def test_a_wrong_passphrase_opens_nothing() -> None:
    with pytest.raises(VaultError) as refused:
        unpacked(packed(), "another one")
    assert refused.value.code == "wrong_passphrase"


def test_frames_of_two_files_do_not_mix() -> None:
    (head, (first, _)), (_, (_, last)) = frames(packed()), frames(packed())
    with pytest.raises(VaultError) as refused:
        unpacked(head + first + last)
    assert refused.value.code == "sealed_damaged"
