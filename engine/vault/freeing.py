"""Giving memory back to the system, which hands it to nobody before it is zeroed."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back() -> None:
    """Collect what is unreachable, and have the allocator let go of empty pages (glibc only)."""
    gc.collect()
    if not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
