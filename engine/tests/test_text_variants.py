"""Traditional and simplified characters."""

from __future__ import annotations

from engine.text.tokenize import analyzer
from engine.text.variants import simplified


def test_traditional_becomes_simplified_and_the_length_stays() -> None:
    assert simplified("資料庫連線用５４３３埠") == "资料库连线用５４３３埠"
    assert simplified("東京の語学学校に発つ") == "东京の语学学校に発つ"


def test_other_text_stays() -> None:
    for text in ("", "plain ASCII", "简体中文不变", "カタカナとひらがな", "한국어"):
        assert simplified(text) == text


def test_a_simplified_question_meets_a_traditional_text_and_the_other_way() -> None:
    search = analyzer("search")
    for query, text in (("数据库备份", "資料庫與數據庫備份"), ("數據庫備份", "数据库备份完成")):
        assert set(search.query_terms(query)) <= set(search.document_terms(text))


def test_the_analyzer_of_vaults_keeps_characters_as_they_are() -> None:
    assert "資料庫" in "".join(analyzer("seed").document_terms("資料庫"))
