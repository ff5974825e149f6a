"""The tokenizer lens: how a query or a text is cut into the terms of the keyword index."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _

from engine.text.lens import Lens
from engine.text.lens import lens as look
from engine.text.tokenize import analyzer
from engine.types import Purpose
from memory.errors import Invalid
from memory.principal import Principal
from memory.services import access

MAX_TEXT: Final = 8000
"""Characters of one look; the longest passage is a tenth of that."""


def lens(principal: Principal, text: str, purpose: Purpose) -> Lens:
    """How a text is cut. Raises ``Invalid`` for one that is too long."""
    access.require(principal, "read")
    if len(text) > MAX_TEXT:
        message = _("At most %(count)s characters.") % {"count": MAX_TEXT}
        raise Invalid(message, fields={"text": message})
    return look(text, analyzer=analyzer("search"), purpose=purpose)
