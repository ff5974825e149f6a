"""CSV and Markdown: what we write is what we read, whatever is in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends import notes
from engine.exchange import csv_rows, markdown
from engine.exchange.found import Reason, Refused
from engine.exchange.read import Format
from engine.testing.exchange_files import format_of, items, records, zipped

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
METADATA = st.dictionaries(TEXT, st.integers() | TEXT | st.lists(TEXT, max_size=2), max_size=3)


@st.composite
def memories(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "content": draw(TEXT.filter(str.strip)),
        "key": draw(TEXT.filter(str.strip)),
        "sessionId": draw(TEXT),
        "metadata": draw(METADATA),
        "pinned": draw(st.booleans()),
        "createdAt": "2025-05-04T12:00:00.123456Z",
    }


@given(rows=st.lists(memories(), min_size=1, max_size=4))
@settings(max_examples=120, deadline=None, derandomize=True)
def test_csv_comes_back_as_it_went_out(rows: list[dict[str, Any]]) -> None:
    import json

    text = "".join(csv_rows.write(rows))
    found = records(text)
    assert [each["content"] for each in found] == [row["content"] for row in rows]
    assert [each["key"] for each in found] == [row["key"] for row in rows]
    assert [each["sessionId"] for each in found] == [row["sessionId"] for row in rows]
    assert [json.loads(each["metadata"]) for each in found] == [row["metadata"] for row in rows]
    assert [each["pinned"] for each in found] == [row["pinned"] for row in rows]


@given(row=memories())
@settings(max_examples=120, deadline=None, derandomize=True)
def test_markdown_comes_back_as_it_went_out(row: dict[str, Any]) -> None:
    text = markdown.text_of(row)
    again = markdown.record_of("a.md", text)
    assert again == {name: value for name, value in row.items() if value not in ("", {}, False)}


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@x", "'=1", "''@", "\t=x", "'quoted'"),
        *(" =1+1", "  -1", "\u3000=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20x", "' =1"),
    ],
)
def test_a_spreadsheet_takes_no_cell_for_a_formula(text: str) -> None:
    row = {"content": text, "key": "k", "apiKeyId": "", "apiKeyName": "", "pinned": False}
    written = "".join(csv_rows.write([row]))
    cell = written.splitlines()[1].split(",")[6]
    assert not cell.strip().startswith(tuple("=+-@\t\uff1d\uff0b\uff0d\uff20"))
    assert records(written)[0]["content"] == text


@pytest.mark.parametrize("text", ["\n=1+1", "\r\n@x", " \n =1", "'\n=1", "\nplain"])
def test_a_line_break_hides_no_formula(text: str) -> None:
    row = {"content": text, "key": "k", "apiKeyId": "", "apiKeyName": "", "pinned": False}
    written = "".join(csv_rows.write([row]))
    assert f'"\'{text}"' in written
    assert records(written)[0]["content"] == text


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_spreadsheet_of_others_is_read_with_its_columns(mark: str) -> None:
    rows = [["Memory", "Created_At", "topic"], ["Likes 'tea'", "2025-05-04", "food"], ["b", "", ""]]
    text = "\r\n".join(mark.join(row) for row in rows)
    assert format_of(text) == Format.CSV
    first, second = records(text)
    assert first["content"] == "Likes 'tea'"
    assert first["createdAt"] == "2025-05-04"
    assert first["metadata"] == {"topic": "food"}
    assert "metadata" not in second


def test_a_row_that_is_too_long_costs_only_itself() -> None:
    text = "content\na\n" + "x" * (csv_rows.MAX_FIELD + 1) + "\nb\n"
    found = items(text)
    assert [item.reason for item in found if isinstance(item, Refused)] == [Reason.NOT_A_ROW]
    assert [each["content"] for each in records(text)] == ["a", "b"]


def test_places_of_rows_are_lines_of_the_file() -> None:
    found = items('content\n"one\ntwo"\nthree\n')
    assert [item.place.number for item in found] == [2, 4]


def test_a_note_of_others_is_a_memory_with_its_fields() -> None:
    text = "---\ntags: [tea, ink]\ndate: 2025-05-04\n---\n# Tea\n\nGreen.\n"
    archive = zipped({"notes/tea.md": text, "plain.md": "No fields"})
    assert format_of(archive) == Format.MARKDOWN
    first, second = records(archive)
    assert first == {
        "content": "# Tea\n\nGreen.\n",
        "key": "notes/tea",
        "metadata": {"tags": ["tea", "ink"], "date": "2025-05-04"},
    }
    assert second == {"content": "No fields", "key": "plain"}


def test_our_notes_are_those_of_a_vault() -> None:
    record = {
        "content": "text",
        "key": "a: b",
        "metadata": {"x": [1, "\u2028\x7f"]},
        "type": "semantic",
    }
    note = notes.parse(markdown.text_of(record))
    assert note.content == "text"
    assert note.fields["memory-key"] == "a: b"
    assert note.fields["memory-metadata"] == {"x": [1, "\u2028\x7f"]}


def test_names_of_files_are_safe_and_none_comes_twice() -> None:
    names = markdown.Names()
    keys = [
        "a/b",
        "a:b",
        "A:B",
        "..",
        "../../x",
        "con",
        "",
        " ",
        "茶",
        "e\u0301",
        "\u00e9",
        "x" * 300,
    ]
    paths = [names.path("1", "Ann", key) for key in keys]
    paths += [names.path("2", "ann", key) for key in keys]
    folded = [path.casefold() for path in paths]
    assert len(set(folded)) == len(paths)
    assert paths[0] == "Ann/a-b.md"
    assert paths[1] == "Ann/a-b 2.md"
    assert {path.partition("/")[0] for path in paths} == {"Ann", "ann 2"}
    for path in paths:
        parts = path.split("/")
        assert len(parts) == 2
        assert all(part not in ("", ".", "..") and len(part.encode()) < 255 for part in parts)
        assert not set(path) & set('\\:*?"<>|\0')


def test_an_empty_note_is_refused() -> None:
    assert [
        item.reason
        for item in items(zipped({"a.md": "---\nx: 1\n---\n \n"}))
        if isinstance(item, Refused)
    ] == [Reason.NO_TEXT]


@pytest.mark.parametrize(
    ("front", "metadata"),
    [
        ("a: {2020-01-01: x}", {"a": {"2020-01-01": "x"}}),
        ("a: {1: {true: [2020-01-01]}}", {"a": {"1": {"True": ["2020-01-01"]}}}),
        ("a: 0x1f", {"a": 31}),
    ],
)
def test_what_yaml_has_and_json_has_not_becomes_text(front: str, metadata: dict[str, Any]) -> None:
    assert markdown.record_of("a.md", f"---\n{front}\n---\ntext")["metadata"] == metadata


@pytest.mark.parametrize(
    "number", ["0x" + "f" * 5000, "0b" + "1" * 5000, "1:" + "59:" * 3000 + "1"]
)
@pytest.mark.parametrize("name", ["a", "memory-key", "memory-session", "memory-metadata"])
def test_a_number_without_end_leaves_front_matter_as_text(name: str, number: str) -> None:
    text = f"---\n{name}: {number}\nb: c\n---\ntext"
    assert markdown.record_of("a.md", text) == {"content": text, "key": "a"}
    assert notes.to_record("a.md", notes.parse(text), notes.Facts()).content == text
