"""What a chat is learnt from: the seam to extraction, which runs after the reply."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from memory.services.gateway.admission import Admission


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said in a chat: the user's last turn as it came, never what we put into it."""

    said: str
    replied: str = ""
    session: str = ""
    model: str = ""


def wants_replies(admission: Admission) -> bool:
    """Whether replies are to be read as well, for learning or for the receipt."""
    return admission.chat.keeps_text


def learn(admission: Admission, turn: Turn, *, trace_id: uuid.UUID) -> None:
    """Have facts extracted from a turn."""
