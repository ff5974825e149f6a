"""Archives: bombs, lies, and names that lead elsewhere."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.exchange.found import Found, Reason, Refused, Unreadable
from engine.exchange.read import Format
from engine.testing.exchange_files import format_of, items, reading, records, zipped

LINE = '{"content": "a"}\n'


def refused(data: bytes) -> str:
    with pytest.raises(Unreadable) as caught:
        reading(data)
    return caught.value.code


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("memories.json", "w") as member,
    ):
        for _block in range(80):
            member.write(b" " * (1 << 20))
    assert len(packed.getvalue()) < 100_000
    assert refused(packed.getvalue()) == "archive_too_large"


def test_a_packed_file_that_never_ends_is_stopped_on_the_way() -> None:
    packed = io.BytesIO()
    with gzip.open(packed, "w") as file:
        file.write(LINE.encode() * 60_000)
        for _block in range(80):
            file.write(b" " * (1 << 20) + b"\n")
    found = reading(packed.getvalue()).items()
    assert isinstance(next(found), Found)
    with pytest.raises(Unreadable) as caught:
        list(found)
    assert caught.value.code == "archive_too_large"


def test_a_member_whose_name_leads_out_is_refused_and_the_others_are_read() -> None:
    archive = zipped(
        {"../../etc/a.md": "x", "/b.md": "x", "C:\\c.md": "x", "a/../../d.md": "x", "fine.md": "y"}
    )
    found = items(archive)
    assert [item.reason for item in found if isinstance(item, Refused)] == [
        Reason.UNSAFE_NAME,
        Reason.UNSAFE_NAME,
        Reason.UNSAFE_NAME,
        Reason.UNSAFE_NAME,
    ]
    assert [each["content"] for each in records(archive)] == ["y"]


def test_packed_members_share_what_an_archive_may_hold() -> None:
    member = gzip.compress(LINE.encode() + b" " * (20 << 20))
    assert len(records(zipped({"a.jsonl.gz": member}))) == 1
    archive = zipped({f"{place}.jsonl.gz": member for place in range(4)})
    with pytest.raises(Unreadable) as refusal:
        items(archive)
    assert refusal.value.code == "archive_too_large"


def test_a_damaged_member_costs_only_itself() -> None:
    data = bytearray(zipped({"a.jsonl": LINE * 50, "b.jsonl": LINE}))
    data[40] ^= 0xFF
    found = items(bytes(data))
    assert [item.reason for item in found if isinstance(item, Refused)] == [Reason.DAMAGED]
    assert sum(isinstance(item, Found) for item in found) >= 1


def test_an_encrypted_member_is_told() -> None:
    data = bytearray(zipped({"a.md": "secret"}))
    start = data.index(b"PK\x01\x02")
    data[start + 8] |= 1
    assert [item.reason for item in items(bytes(data)) if isinstance(item, Refused)] == [
        Reason.DAMAGED
    ]


def test_what_is_no_memory_is_left_alone() -> None:
    archive = zipped(
        {"__MACOSX/a.md": "x", ".obsidian/b.md": "x", "c.png": b"\x89PNG", "d.md": "y"}
    )
    assert [each["content"] for each in records(archive)] == ["y"]
    assert refused(zipped({"a.png": b"\x89PNG"})) == "nothing_to_import"


def test_binary_under_the_name_of_json_is_told() -> None:
    found = items(zipped({"a.json": b"\xff\xfe\x00", "b.json": '[{"content": "b"}]'}))
    assert [type(item) for item in found] == [Refused, Found]


def test_a_packed_file_is_read_as_what_it_holds() -> None:
    packed = gzip.compress(LINE.encode() * 2)
    assert format_of(packed) == Format.JSONL
    assert len(records(packed)) == 2


def test_places_name_the_member() -> None:
    found = items(zipped({"a.jsonl": LINE + "{broken\n", "b.json": '[{"content": "b"}, 1]'}))
    assert [(item.place.file, item.place.number) for item in found] == [
        ("a.jsonl", 1),
        ("a.jsonl", 2),
        ("b.json", 1),
        ("b.json", 2),
    ]


@pytest.mark.parametrize("data", [b"PK\x03\x04", b"PK\x05\x06", b"PK\x03\x04 no archive at all"])
def test_what_only_begins_like_an_archive_is_refused(data: bytes) -> None:
    assert refused(data) == "invalid_archive"


@given(place=st.integers(0, 400), value=st.integers(1, 255))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_flipped_byte_of_an_archive_makes_it_crash(place: int, value: int) -> None:
    data = bytearray(zipped({"a.jsonl": LINE * 20, "b.md": "text", "c.csv": "content\nx\n"}))
    data[place % len(data)] ^= value
    try:
        found = items(bytes(data))
    except Unreadable as error:
        assert error.code.startswith(("invalid_", "nothing_to_import", "archive_too_large"))
    else:
        assert found


def test_how_far_it_is_grows_with_what_was_read() -> None:
    made = reading("".join(f'{{"content": "{place}"}}\n' for place in range(50_000)))
    shares = [made.share for place, _item in enumerate(made.items()) if place % 10_000 == 0]
    assert shares == sorted(shares)
    assert made.share == 1.0
