"""A small builder for tests of ``child_build``; a file ``fail`` in the folder says how to end."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
from pathlib import Path
from threading import Event

from engine.embed import child_build
from engine.embed.child_build import Progress
from engine.errors import EmbeddingFailed


def build(folder: Path, progress: Progress) -> None:
    """Writes a file, or fails in the way that is asked."""
    (folder / "pid").write_text(str(os.getpid()))
    lock = (folder / "lock").open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    progress(0.0, "begin")
    told = folder / "fail"
    way = told.read_text() if told.exists() else ""
    if way == "embedding":
        raise EmbeddingFailed("wrong file", code="model_load_failed")
    if way == "disk":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if way == "library":
        raise ValueError("from deep inside")
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "hang":
        Event().wait()
    (folder / "model").write_text("weights")
    (folder / "niceness").write_text(str(os.nice(0)))
    progress(1.0, "done")


if __name__ == "__main__":
    child_build.serve(build, Path(sys.argv[1]))
