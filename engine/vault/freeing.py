"""Keeping secrets in memory and out of files; giving memory back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys


def forbid_core_dumps() -> None:
    """Have a crash of this process leave no file with its memory, where the system has such."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def give_back() -> None:
    """Collect what is unreachable, and have the allocator let go of empty pages (glibc only).

    The system hands a page to nobody before it is zeroed.
    """
    gc.collect()
    if not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
