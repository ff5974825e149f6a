"""Reading what was said, and what a request says of itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.chat.bodies import dumped, parse
from engine.chat.callers import MAX_SESSION, session_of, wants_no_memory
from engine.chat.reading import is_said_before, own_words, request_text, response_text, storable
from engine.chat.sse import MAX_LINE_BYTES, ReplyReader

TOOL_RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "42"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"messages": [{"role": "user", "content": " hi "}]}, "hi"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}]},
            "a\nb",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "what is it?"},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]},
                    {"role": "user", "content": [TOOL_RESULT]},
                ]
            },
            "what is it?",
        ),
        (
            {"messages": [{"role": "user", "content": [TOOL_RESULT, {"text": "and now?"}]}]},
            "and now?",
        ),
        (
            {"messages": [{"role": "user", "content": "q"}, {"role": "tool", "content": "42"}]},
            "q",
        ),
        (
            {
                "input": [
                    {"role": "user", "content": "q"},
                    {"type": "function_call_output", "output": "42"},
                ]
            },
            "q",
        ),
        ({"messages": [], "input": "from input"}, "from input"),
        ({"messages": "text"}, "text"),
        ({"messages": [1, None, {"role": "user"}]}, ""),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, ""),
        ([1], ""),
    ],
)
def test_the_last_turn_of_the_user_is_read(body: Any, text: str) -> None:
    assert request_text(body) == text


Q = {"role": "user", "content": "q"}
PICTURE = {"role": "user", "content": [{"type": "image_url"}]}
CALL = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("body", "is_before"),
    [
        ({"messages": [Q]}, False),
        ({"messages": [Q, PICTURE]}, False),
        ({"messages": [Q, CALL]}, False),
        ({"messages": [Q, CALL, {"role": "tool", "content": "42"}]}, True),
        ({"messages": [Q, CALL, {"role": "user", "content": [TOOL_RESULT]}]}, True),
        ({"messages": [Q, CALL, PICTURE]}, True),
        ({"input": [Q, {"type": "function_call_output", "output": "42"}]}, True),
        ({"input": "q"}, False),
        ({"messages": [1, None, CALL]}, False),
        ([], False),
    ],
)
def test_a_turn_that_the_results_of_tools_follow_was_said_before(
    body: Any, is_before: bool
) -> None:
    assert is_said_before(body) is is_before


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("<system-reminder>\nI always use tabs.\n</system-reminder>\nfix it", "fix it"),
        ('fix it\n<file path="a.py">\nx\n\ny\n</file>\n\nnow', "fix it\n\nnow"),
        ("<user_query>\nI prefer tea\n</user_query>", "<user_query>\nI prefer tea\n</user_query>"),
        ("<env>\nonly this\n</env>", ""),
        ("a <b> c\n<open>\nnever closed", "a <b> c\n<open>\nnever closed"),
    ],
)
def test_what_programs_put_around_a_turn_is_not_the_users(text: str, own: str) -> None:
    assert own_words(text) == own


def test_a_long_turn_of_tags_is_read_at_once() -> None:
    text = "<a>\n" * 20_000 + "</b>"
    assert own_words(text) == text.strip()
    assert own_words(f"{text}\n</a>\nhi") == "hi"


def test_what_no_database_holds_is_left_out_of_a_text() -> None:
    assert storable("a\0b \ud800 咖啡") == "ab ? 咖啡"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        (
            {
                "output": [
                    {"type": "reasoning", "content": [{"text": "hm"}]},
                    {"type": "message", "content": [{"type": "output_text", "text": "out"}]},
                ]
            },
            "out",
        ),
        ({"choices": [{"message": {"content": None}}], "output_text": "o"}, "o"),
        ({"choices": [1, {"message": "x"}]}, ""),
        ({"candidates": [{"content": "x"}]}, ""),
        ("text", ""),
    ],
)
def test_the_reply_is_read_in_any_protocol(body: Any, text: str) -> None:
    assert response_text(body) == text


def test_a_body_is_an_object_of_real_json_or_nothing() -> None:
    assert parse(b'{"a": 1}') == {"a": 1}
    bad = (b"", b"[1]", b'{"a": NaN}', b'{"a": 1e999}', b"{", b"\xff", b'{"a":' * 10_000_000)
    assert [parse(raw) for raw in bad] == [None] * len(bad)


def test_a_body_keeps_half_a_surrogate_pair_and_large_numbers() -> None:
    raw = b'{"a":"\\ud800","n":12345678901234567890123,"\xe5\x92\x96":0.1}'
    body = parse(raw)
    assert body is not None
    assert json.loads(dumped(body)) == json.loads(raw)


def test_either_header_asks_for_no_memory() -> None:
    assert wants_no_memory({"X-Memory-Opt-Out": " Yes "})
    assert wants_no_memory({"x-omniroute-no-memory": "1"})
    assert wants_no_memory({"x-memory-opt-out": "no, true"})
    assert not wants_no_memory({"x-memory-opt-out": "on", "x-other": "true"})


@pytest.mark.parametrize(
    ("headers", "body", "session"),
    [
        ({"x-session-id": "会議".encode().decode("latin-1")}, {}, "会議"),
        ({"x-session-id": "caf\xe9"}, {}, "café"),
        ({"x-session-id": "h"}, {"metadata": {"session_id": "m"}, "user": "u"}, "h"),
        ({}, {"metadata": {"session_id": "m"}, "user": "u"}, "m"),
        ({}, {"metadata": {"user_id": "claude"}}, "claude"),
        ({}, {"conversation": {"id": "conv"}}, "conv"),
        ({}, {"metadata": "x", "user": " u\x00\n "}, "u"),
        ({}, {"user": 7}, ""),
    ],
)
def test_the_session_is_named_by_the_header_or_the_body(
    headers: dict[str, str], body: dict[str, Any], session: str
) -> None:
    assert session_of(headers, body) == session


def test_a_session_too_long_for_a_row_becomes_its_hash() -> None:
    long = session_of({"x-session-id": "s" * (MAX_SESSION + 1)}, {})
    assert len(long) == 64
    assert long != session_of({"x-session-id": "s" * (MAX_SESSION + 2)}, {})


def _stream(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events)


@pytest.mark.parametrize(
    "events",
    [
        [{"choices": [{"index": 0, "delta": {"content": part}}]} for part in ("你", "好 ", "yes")],
        [
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "你好 yes"}},
            {"type": "content_block_delta", "delta": {"type": "input_json_delta"}},
        ],
        [{"type": "response.output_text.delta", "delta": "你好 yes"}],
    ],
)
def test_a_streamed_reply_is_put_together_whatever_the_pieces(events: list[Any]) -> None:
    raw = _stream(*events)
    for size in (1, 7, len(raw)):
        reader = ReplyReader()
        for start in range(0, len(raw), size):
            reader.feed(raw[start : start + size])
        assert reader.text == "你好 yes"


def test_a_stream_says_that_it_is_over() -> None:
    for end in (b"data: [DONE]\n\n", _stream({"type": "message_stop"})):
        reader = ReplyReader()
        reader.feed(end)
        assert reader.is_complete


def test_what_is_no_event_is_passed_over() -> None:
    reader = ReplyReader()
    reader.feed(b'data: {"broken\ndata: [1]\n: comment\nevent: x\n\xff\xfe\n')
    reader.feed(b"data: " + b"x" * (MAX_LINE_BYTES + 1))
    reader.feed(b"yyy\n" + _stream({"choices": [{"delta": {"content": "ok"}}]}))
    assert reader.text == "ok"
    assert not reader.is_complete
