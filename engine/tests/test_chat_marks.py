"""Wherever a client puts its marks for a prompt cache, our block stands behind all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chat.block import NAME, Note
from engine.chat.bodies import Protocol
from engine.chat.inject import Aim, Style, inject

MARK = {"cache_control": {"type": "ephemeral"}}
PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": "t"},
    {"type": "image", "source": {}},
    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "r"}]},
    {"type": "tool_result", "content": [{"type": "text", "text": "r", **MARK}]},
]
marked = st.sampled_from([{}, {}, MARK])
parts = st.lists(st.builds(lambda part, mark: {**part, **mark}, st.sampled_from(PARTS), marked))
content = st.one_of(st.just("s"), parts.filter(bool))
turn = st.builds(
    lambda role, said, mark: {"role": role, "content": said, **mark},
    st.sampled_from(["user", "assistant"]),
    content,
    marked,
)
system = st.one_of(st.just("S"), st.just([{"type": "text", "text": "S", **MARK}]))


def pieces(body: Any, protocol: Protocol) -> Iterator[str]:
    """The request in the order of its prompt, a mark of a whole turn after the turn."""
    turns = [{"content": body.get("system")}] if protocol is Protocol.MESSAGES else []
    for one in [*turns, *body["messages"]]:
        said = one["content"]
        yield from (json.dumps(part) for part in (said if isinstance(said, list) else [said]))
        if "cache_control" in one:
            yield json.dumps(MARK)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(turn, min_size=1, max_size=5),
    system,
    marked,
    st.sampled_from([Protocol.CHAT, Protocol.MESSAGES]),
    st.sampled_from(["openai", "lab", "mimo"]),
)
def test_the_block_stands_behind_every_mark(
    turns: Any, prompt: Any, mark: Any, protocol: Protocol, provider: str
) -> None:
    body = {"messages": turns, "system": prompt, **mark}
    before = json.dumps(body)
    aim = Aim(protocol, provider)
    done = inject(body, [Note("1", "x")], aim=aim, style=Style.BLOCK, max_tokens=500)
    assert json.dumps(body) == before
    if done is not None:
        found = list(pieces(done.body, protocol))
        ours = next(at for at, piece in enumerate(found) if NAME in piece)
        assert not any("cache_control" in piece for piece in found[ours:])
