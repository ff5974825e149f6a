"""The one error of backup and restore."""

from __future__ import annotations


class BackupError(Exception):
    """It cannot be done. The message is one sentence for the person who asked for it."""
