"""The one error that stops a start. Imports nothing, so that everything may raise it."""

from __future__ import annotations


class StartError(Exception):
    """The program cannot start. The message is one sentence for the person who started it."""
