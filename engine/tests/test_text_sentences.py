from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.sentences import first_sentences, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Version 3.14 is out. It is fast. It is small. It is free.",
            "Version 3.14 is out. It is fast. It is small.",
        ),
        ("你好。再见。早安。晚安。明天见。", "你好。再见。早安。"),
        ("a@b.com wrote. See www.x.org now. Ok.", "a@b.com wrote. See www.x.org now. Ok."),
        ("Line one\nLine two\nLine three\nLine four", "Line one\nLine two\nLine three\nLine four"),
        ("Ash. Birch. Cedar. Dogwood.", "Ash. Birch. Cedar."),
        ("", ""),
        ("no end", "no end"),
    ],
)
def test_summary_sentences_the_first_three_stay_as_they_stand(text: str, expected: str) -> None:
    assert first_sentences(text, 3) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith met J. R. Tolkien. He left.", ["Dr. Smith met J. R. Tolkien.", "He left."]),
        (
            "At 5 p.m. he left. At 5 p.m. They ate.",
            ["At 5 p.m. he left.", "At 5 p.m.", "They ate."],
        ),
        ('"Really?" she asked. Fine!', ['"Really?" she asked.', "Fine!"]),
        ('He said "Go." Then left.', ['He said "Go."', "Then left."]),
        ("Wait... what? No.", ["Wait... what?", "No."]),
        ("「はい。」と言った。次の文！", ["「はい。」と言った。", "次の文！"]),
        ("価格は3.5円です。OK? はい", ["価格は3.5円です。", "OK?", "はい"]),
        ("今天很好！！我们去吧……好的。", ["今天很好！！", "我们去吧……", "好的。"]),
        ("1. First item. 2. Second.", ["1. First item.", "2. Second."]),
        ("Para one\n\nPara two", ["Para one", "Para two"]),
        ("Use e.g. tea, etc. Then go.", ["Use e.g. tea, etc.", "Then go."]),
        ("I did. It costs 5. Next.", ["I did.", "It costs 5.", "Next."]),
    ],
)
def test_sentences_end_where_a_reader_would_say(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(st.sampled_from('aB1 .!?。！…」"\n'), max_size=60))
def test_no_character_but_space_is_lost(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
