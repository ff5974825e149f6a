from __future__ import annotations

import pytest

from engine.vault.errors import VaultError
from engine.vault.ingest import checked, read_text, title_of


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        (b"\xef\xbb\xbfafter a mark", "after a mark"),
        ("# 见出し\r\n\r\n本文😀".encode(), "# 见出し\r\n\r\n本文😀"),
        ("e\u0301 ｆ".encode(), "e\u0301 ｆ"),
        (b"\xef\xbf\xbf", "\uffff"),
        (b"\xf4\x8f\xbf\xbf", "\U0010ffff"),
    ],
)
def test_text_is_kept_as_it_is_but_for_a_byte_order_mark(data: bytes, text: str) -> None:
    assert read_text(data) == text


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"", "invalid_text", "empty"),
        (b" \n\t", "invalid_text", "empty"),
        (b"\xef\xbb\xbf", "invalid_text", "empty"),
        (b"a\0b", "invalid_text", "NUL"),
        (b"\xc3", "invalid_utf8", ""),
        (b"\x80", "invalid_utf8", ""),
        (b"\xc0\x80", "invalid_utf8", "overlong"),
        (b"\xe0\x80\x80", "invalid_utf8", "overlong"),
        (b"\xf0\x80\x80\x80", "invalid_utf8", "overlong"),
        (b"\xed\xa0\x80", "invalid_utf8", "surrogate"),
        (b"\xf4\x90\x80\x80", "invalid_utf8", "above U+10FFFF"),
        (b"\xf5\x80\x80\x80", "invalid_utf8", "above U+10FFFF"),
        (b"%PDF-1.7", "unsupported_type", "starts with %PDF-"),
        (b"PK\x03\x04word/document.xml", "unsupported_type", "starts with PK"),
        (b"\xd0\xcf\x11\xe0\xa1", "unsupported_type", "starts with D0CF11E0"),
        ("UTF-16".encode("utf-16"), "unsupported_type", "starts with FFFE"),
    ],
)
def test_what_is_no_text_is_refused_with_the_reason(data: bytes, code: str, reason: str) -> None:
    with pytest.raises(VaultError) as refused:
        read_text(data)
    assert (refused.value.code, refused.value.reason) == (code, reason)


def test_half_a_character_in_text_from_a_client_is_refused() -> None:
    with pytest.raises(VaultError) as refused:
        checked("a\ud800")
    assert refused.value.code == "invalid_utf8"


@pytest.mark.parametrize(
    ("title", "name", "found"),
    [
        ("Notes", "a.md", "Notes"),
        ("", "folder/sub\\notes.md", "notes.md"),
        ("  two\nlines | text: x ", "", "two lines | text: x"),
        ("\0", "a.md", "a.md"),
        ("x" * 300, "", "x" * 200),
    ],
)
def test_a_title_is_one_line_and_the_file_name_serves(title: str, name: str, found: str) -> None:
    assert title_of(title, name) == found


def test_a_card_without_title_and_file_name_is_refused() -> None:
    with pytest.raises(VaultError) as refused:
        title_of(" \n", "")
    assert (refused.value.code, refused.value.reason) == ("invalid_text", "title")
