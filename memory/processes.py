"""Names of processes on leases, and whether the one that a name means still runs.

A name reads ``role@host+scope:pid:born``. ``scope`` stands for this start of the machine and this
namespace of process ids, ``born`` for the moment the process began: a container that was started
again gives the same numbers to other processes, and two containers may share a host name.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from functools import cache
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"\w+@(?P<host>.+)\+(?P<scope>[0-9a-f]{8}):(?P<pid>\d+):(?P<born>\d+)")
_ENDED: Final = frozenset("ZXx")
"""States of a process that will not run again, though its entry is still there."""


def name(role: str) -> str:
    """What this process writes on the leases it takes; at most 120 characters."""
    pid = os.getpid()
    host = socket.gethostname()[:64]
    return f"{role}@{host}+{_scope()}:{pid}:{_born(pid) or 0}"


def is_gone(named: str) -> bool:
    """Whether the process has surely ended. One of another machine or container never counts."""
    found = _NAME.fullmatch(named)
    if found is None or found["scope"] != _scope() or found["host"] != socket.gethostname()[:64]:
        return False
    # Where the system tells nothing about processes, the lease decides.
    return found["born"] != "0" and str(_born(int(found["pid"]))) != found["born"]


@cache
def _scope() -> str:
    parts = []
    for path, read in (("/proc/sys/kernel/random/boot_id", _text), ("/proc/self/ns/pid", _target)):
        try:
            parts.append(read(Path(path)))
        except OSError:
            parts.append("")
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:8]


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _target(path: Path) -> str:
    return str(path.readlink())


def _born(pid: int) -> int | None:
    """When a living process began, in ticks since the machine's start; None without one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program stands in brackets and may hold anything.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in _ENDED else int(fields[19])
