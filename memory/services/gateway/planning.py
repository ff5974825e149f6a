"""What memory adds to a chat: one retrieval, and the request that is sent upstream.

The gateway and the preview both come through ``plan``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from threading import Event
from typing import Final

from engine.chat.block import Note
from engine.chat.bodies import Body
from engine.chat.inject import Aim, Injected, Style, inject, room_for_notes, should_inject
from engine.chat.reading import own_words, request_text, storable
from engine.keyword.limits import shorten_query
from engine.text.tokens import cut_to_tokens
from engine.types import Hit, Mode
from memory.services import retrieval
from memory.services.gateway import meter
from memory.services.gateway.admission import Admission
from memory.services.retrieval import Purpose, RetrievalView, RetrieveRequest

MODES: Final[Mapping[str, Mode]] = {
    "semantic": Mode.VECTOR,
    "hybrid": Mode.HYBRID,
    "recent": Mode.RECENT,
}
REACHES: Final[Mapping[str, retrieval.Reach]] = {
    "session": "session",
    "apiKey": "apiKey",
    "global": "global",
}


class State(StrEnum):
    """What memory did in a chat."""

    INJECTED = "injected"
    NONE = "none"
    """Nothing relevant."""
    OFF = "off"
    OPTED_OUT = "opted_out"
    NO_TEXT = "no_text"
    """The user said nothing that could be looked for."""
    NO_SESSION = "no_session"
    NO_PLACE = "no_place"
    CAPPED = "capped"
    """The key has spent its tokens of the day."""
    LATE = "late"
    FAILED = "failed"


TROUBLE: Final = frozenset({State.LATE, State.FAILED})


@dataclass(frozen=True, slots=True)
class Ask:
    """One chat as it came. ``aim`` is whom it goes to; ``left`` is set when nobody waits any more
    for what memory adds."""

    body: Body
    aim: Aim
    session: str = ""
    is_opted_out: bool = False
    left: Event | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What memory did, with the retrieval and the request it made. Durations in milliseconds."""

    state: State
    query: str = ""
    view: RetrievalView | None = None
    injected: Injected | None = None
    notes: tuple[Note, ...] = ()
    durations: Mapping[str, float] = field(default_factory=dict)


def plan(admission: Admission, ask: Ask, *, purpose: Purpose) -> Plan:
    """Retrieve for the user's last turn and put what was found into the request.

    A plan for a chat takes its tokens from the key's day where that is capped; a preview takes
    nothing.
    """
    state = _why_not(admission, ask)
    query = query_of(ask.body) if state is None else ""
    if state is not None or not query:
        return Plan(state or State.NO_TEXT)
    started = time.perf_counter()
    view = _retrieved(admission, ask, query, purpose)
    found = time.perf_counter()
    notes = tuple(_notes(view))
    made = put_in(admission, ask.body, ask.aim, notes)
    durations = {
        "retrieve": (found - started) * 1000,
        "inject": (time.perf_counter() - found) * 1000,
    }
    done = Plan(State.NONE, query, view, made, notes, durations)
    if made is None:
        return replace(done, state=State.NO_PLACE) if notes else done
    if ask.left is not None and ask.left.is_set():
        # What does not go into the chat costs its key nothing.
        return replace(done, state=State.LATE, injected=None)
    if not meter.allows(admission.key, made.tokens, is_spent=purpose == "chat"):
        return replace(done, state=State.CAPPED, injected=None)
    return replace(done, state=State.INJECTED)


def query_of(body: Body) -> str:
    """What a chat looks for: the user's last turn, as much of it as a query holds."""
    text = storable(request_text(body))
    return shorten_query(own_words(text) or text).strip()


def mode_of(admission: Admission) -> Mode:
    """How a chat of this caller is searched for."""
    return MODES.get(admission.memory.strategy, Mode.HYBRID)


def put_in(admission: Admission, body: Body, aim: Aim, notes: tuple[Note, ...]) -> Injected | None:
    """The request for one upstream with notes in it."""
    style = Style(admission.chat.style)
    return inject(body, notes, aim=aim, style=style, max_tokens=admission.memory.max_tokens)


def _why_not(admission: Admission, ask: Ask) -> State | None:
    if ask.is_opted_out:
        return State.OPTED_OUT
    if not admission.is_injecting:
        return State.OFF
    if not should_inject(ask.body, enabled=True):
        return State.NO_TEXT
    if admission.chat.scope == "session" and not ask.session:
        return State.NO_SESSION
    return None


def _retrieved(admission: Admission, ask: Ask, query: str, purpose: Purpose) -> RetrievalView:
    chosen, style = admission.chat, Style(admission.chat.style)
    request = RetrieveRequest(
        query=query,
        mode=mode_of(admission),
        limit=chosen.limit,
        max_tokens=room_for_notes(style, admission.memory.max_tokens),
        session=ask.session if chosen.scope == "session" else None,
        reach=REACHES.get(chosen.scope, "apiKey"),
    )
    # To chat with its own memories is what the scope ``chat`` is for.
    reader = replace(admission.principal, scopes=admission.principal.scopes | {"read"} - {"manage"})
    known = retrieval.Known(admission.memory, admission.key)
    return retrieval.retrieve(reader, request, purpose=purpose, known=known)


def _notes(view: RetrievalView) -> list[Note]:
    """What is worth its tokens. A search shows everything that came along with a good hit; a chat
    is only given what is good by itself: near enough, or holding words of the turn."""
    notes = []
    for hit in view.retrieval.hits:
        if _is_weak(hit, view.floor):
            continue
        memory = view.memories[hit.passage.parent]
        text = memory.content
        if hit.is_truncated:
            text = cut_to_tokens(text, hit.tokens)
        day: date = (memory.occurred_at or memory.created_at).date()
        notes.append(Note(str(memory.pk), text, day))
    return notes


def _is_weak(hit: Hit, floor: float | None) -> bool:
    if floor is None or hit.vector_score is None or hit.keyword_score is not None:
        return False
    return hit.vector_score < floor
