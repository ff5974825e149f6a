from __future__ import annotations

import pytest

from engine.text.normalize import (
    Script,
    fold,
    has_han,
    has_kana,
    has_unspaced,
    normalize,
    script_of,
    without_accents,
)


def test_width_case_and_whitespace_are_folded() -> None:
    assert normalize("  Ｆｕｌｌ\u3000WIDTH\n\tﾃﾞｰﾀ ") == "full width データ"


def test_folding_twice_changes_nothing_more() -> None:
    for text in ("Straße", "İstanbul", "ǰ\u0345", "ﬁn", "㍿"):
        assert fold(fold(text)) == fold(text)


def test_lone_surrogates_are_replaced() -> None:
    assert fold("a\ud800B") == "a\ufffdb"


def test_accents_go_and_kana_marks_in_one_character_stay() -> None:
    assert without_accents("café naïve") == "cafe naive"
    assert without_accents("デ") == "デ"


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("I like tea", Script.LATIN),
        ("我喜欢喝咖啡", Script.HAN),
        ("我在用 Postgres 数据库", Script.HAN),
        ("コーヒーが好きです", Script.KANA),
        ("東京都庁へ行く", Script.KANA),
        ("커피를 좋아해요", Script.HANGUL),
        ("Я люблю кофе", Script.CYRILLIC),
        ("أحب القهوة", Script.OTHER),
        ("123 !?", Script.OTHER),
        ("", Script.OTHER),
    ],
)
def test_the_script_of_a_text_is_what_most_of_it_is_written_in(text: str, script: Script) -> None:
    assert script_of(text) is script


def test_characters_of_a_script_are_told_apart() -> None:
    assert has_han("a中") and not has_han("あ")
    assert has_kana("中あ") and not has_kana("中・")
    assert has_unspaced("ก") and not has_unspaced("é")
