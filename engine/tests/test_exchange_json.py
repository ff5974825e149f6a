"""JSON of any size, value by value: what is broken costs only itself."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.exchange.found import Found, Reason, Refused, Unit
from engine.exchange.json_stream import CHUNK_BYTES, JsonStream, Value
from engine.testing.exchange_files import format_of, items, records

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


class Dripping(io.BytesIO):
    """A file that gives seven bytes at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, 7) if size and size > 0 else 7)


def values(text: str | bytes, *, whole: bool = False) -> list[Value]:
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    stream = JsonStream(Dripping(raw))
    return list(stream.whole() if whole else stream.values())


@given(document=st.lists(PLAIN), indent=st.sampled_from([None, 2]))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_a_list_is_what_the_json_module_reads(document: list[Any], indent: int | None) -> None:
    found = values(json.dumps(document, indent=indent))
    assert [each.value for each in found] == document
    assert [each.number for each in found] == list(range(1, len(document) + 1))


@given(document=st.dictionaries(st.text(max_size=5), PLAIN))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_the_members_of_an_object_come_with_their_names(document: dict[str, Any]) -> None:
    again: dict[str, Any] = {}
    for each in values(json.dumps(document, ensure_ascii=False)):
        if each.number:
            again.setdefault(each.name, []).append(each.value)
        else:
            again[each.name] = each.value
    assert again == {name: value for name, value in document.items() if value != []}


def test_a_number_that_is_cut_by_the_end_of_a_piece_is_read_whole() -> None:
    assert [each.value for each in values("[1234567890, 0.125]")] == [1234567890, 0.125]
    assert [each.value for each in values("1234567890", whole=True)] == [1234567890]


def test_only_one_value_is_in_memory() -> None:
    stream = JsonStream(io.BytesIO(json.dumps([{"content": "x" * 1000}] * 5000).encode()))
    longest = max(len(stream._text) for _value in stream.values())
    assert longest <= 2 * CHUNK_BYTES


def test_a_broken_record_in_lines_costs_only_itself() -> None:
    text = '[\n  {"a": 1},\n  {"b": oops},\n  {"c": {"d":\n    {}}},\n  {"e": 5}\n]'
    found = values(text)
    assert [each.value for each in found] == [{"a": 1}, None, {"c": {"d": {}}}, {"e": 5}]
    assert [each.is_broken for each in found] == [False, True, False, False]


@pytest.mark.parametrize("text", ['[{"a": 1}, {"b": 2', '[{"a": 1}, oops, {"b": 2}]', '[{"a": 1}'])
def test_what_comes_before_a_break_is_read(text: str) -> None:
    found = values(text)
    assert found[0].value == {"a": 1}
    assert [each.is_broken for each in found[1:]] == [True]


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"a": ' * 50_000])
def test_what_python_refuses_is_broken_and_no_crash(text: str) -> None:
    assert [each.is_broken for each in values(f"[{text}")] == [True]


@given(data=st.binary(max_size=60) | st.text(alphabet='{}[]",:1 \n\\au', max_size=40))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_nothing_makes_it_crash_or_go_on_for_ever(data: bytes | str) -> None:
    raw = data if isinstance(data, bytes) else data.encode()
    assert len(values(raw)) <= len(raw) + 1
    assert len(values(raw, whole=True)) <= len(raw) + 1


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        pytest.param('{"content": "a"}\n{"content": "b"}', "jsonl", 2, id="lines"),
        pytest.param('\ufeff[{"content": "a"}]', "json", 1, id="byte order mark"),
        pytest.param('{"content": "a"}', "json", 1, id="one record"),
        pytest.param('{\n "content": "a"\n}', "json", 1, id="one record over lines"),
        pytest.param('{"memories": [\n{"content": "a"},\n{"content": "b"}]}', "json", 2, id="ours"),
        pytest.param('{"data": [{"content": "a"}], "total": 1}', "json", 1, id="page export"),
        pytest.param('{"memories": []}', "json", 0, id="empty export"),
        pytest.param("[]", "json", 0, id="empty list"),
        pytest.param("", "jsonl", 0, id="nothing"),
        pytest.param('\r\n{"content": "a"}\r\n\r\n{"content": "b"}\r\n', "jsonl", 2, id="CRLF"),
        pytest.param('{"content": "a\u2028b"}\n{"content": "c"}', "jsonl", 2, id="U+2028"),
    ],
)
def test_every_layout_is_told_from_how_it_begins(text: str, kind: str, count: int) -> None:
    assert format_of(text) == kind
    assert len(records(text)) == count


def test_lines_are_counted_from_the_top_of_the_file() -> None:
    found = items('{"content": "a"}\n\n{broken\n{"content": "b"}\n')
    assert [item.place.number for item in found] == [1, 3, 4]
    assert {item.place.unit for item in found} == {Unit.LINE}
    assert isinstance(found[1], Refused)
    assert found[1].reason == Reason.NOT_JSON


def test_a_broken_first_line_does_not_cost_the_others() -> None:
    found = items('{"content": "no end\n{"content": "b"}\n{"content": "c"}\n')
    assert [isinstance(item, Found) for item in found] == [False, True, True]


def test_lines_longer_than_the_first_look_are_read() -> None:
    long = json.dumps({"content": "x" * 3_000_000})
    assert len(records(f'{long}\n{long}\n{{"content": "c"}}\n')) == 3
    assert len(records(f"[{long},{long}]")) == 2


def test_bytes_that_are_no_text_cost_only_their_line() -> None:
    found = items(b'{"content": "a"}\n{"content": "\xff"}\n{"content": "b"}', wanted="jsonl")
    assert [isinstance(item, Found) for item in found] == [True, False, True]


def test_a_list_of_commas_and_blanks_is_read_at_once() -> None:
    text = "[" + ", \n" * 300_000 + '{"content": "tea"},,' + " " * 300_000 + "]"
    assert [each["content"] for each in records(text)] == ["tea"]
