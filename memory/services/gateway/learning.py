"""What a chat is learnt from: the seam to extraction, which runs after the reply."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from engine.extract.facts import Speaker
from memory.services.extraction import learning, turns
from memory.services.gateway.admission import Admission


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said in a chat: the user's last turn as it came, never what we put into it.

    ``injected`` are the memories that the model was given: what it repeats of them is not learnt.
    ``is_said_before``: an earlier request had the turn, and it was learnt from then; an agent sends
    it again with the results of each of its tools.
    """

    said: str
    replied: str = ""
    session: str = ""
    model: str = ""
    injected: tuple[str, ...] = ()
    is_said_before: bool = False


def wants_replies(admission: Admission) -> bool:
    """Whether replies are to be read as well, for learning or for the receipt."""
    return admission.chat.keeps_text or admission.is_reading_replies


def learn(admission: Admission, turn: Turn, *, trace_id: uuid.UUID) -> None:
    """Have facts extracted from a turn by a worker, and none from what was injected."""
    said = []
    if not turn.is_said_before:
        said.append(_turn(turn, turn.said, Speaker.USER, trace_id))
    if turn.replied and admission.is_reading_replies:
        said.append(_turn(turn, turn.replied, Speaker.ASSISTANT, trace_id))
    turns.learn_soon(admission.key, said)


def _turn(turn: Turn, text: str, speaker: Speaker, trace_id: uuid.UUID) -> learning.Turn:
    return learning.Turn(
        text=text,
        speaker=speaker,
        session=turn.session,
        injected=turn.injected,
        trace_id=trace_id,
    )
