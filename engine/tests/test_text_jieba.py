from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.jieba_words import Segmenter, jieba_segmenter, rjieba_segmenter
from engine.text.normalize import fold

FAST = rjieba_segmenter()
MIXED = st.text(
    st.sampled_from("中国退款天内我喜欢abc1290.-_+#&%/@:' 　，。あアé한🚀\n\t"), max_size=30
)


@pytest.fixture(scope="module")
def slow() -> Segmenter:
    return jieba_segmenter()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("node.js", ["node", ".", "js"]),
        ("retry-after", ["retry", "-", "after"]),
        ("a.b", ["a", ".", "b"]),
        ("snake_case", ["snake", "_", "case"]),
        ("c++", ["c++"]),
        ("3.14", ["3.14"]),
        ("50%", ["50%"]),
        ("我喜欢喝咖啡", ["我", "喜欢", "喝咖啡"]),
    ],
)
def test_both_libraries_cut_code_like_words_alike(
    slow: Segmenter, text: str, words: list[str]
) -> None:
    assert FAST.words(text) == slow.words(text) == words


def test_both_libraries_cut_any_text_alike(slow: Segmenter) -> None:
    @given(MIXED)
    @settings(max_examples=300, deadline=None, database=None)
    def compare(text: str) -> None:
        assert FAST.words(fold(text)) == slow.words(fold(text))

    @given(st.text(st.sampled_from("中国退款天内我喜欢龥々〇𠀀增值税专用发票"), max_size=20))
    @settings(max_examples=200, deadline=None, database=None)
    def compare_known(text: str) -> None:
        assert FAST.known_words(text) == slow.known_words(text)

    compare()
    compare_known()


def test_jieba_writes_no_cache_where_others_could_plant_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jieba_segmenter().words("退款政策") == ["退款", "政策"]
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
