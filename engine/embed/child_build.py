"""Builds a model's files in a process of its own.

Repacking spends hundreds of milliseconds at a time inside libraries that hold the interpreter's
lock; in the process that answers requests everything would stand still meanwhile. The child has a
low priority, tells its steps as lines of JSON on its output, and ends with its parent: its input
is a pipe that closes when the parent is gone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import IO

from engine.errors import EmbeddingFailed

ROOT = Path(__file__).parents[2]
NICENESS = 10
ORPHANED = 3
"""Exit status of a child whose parent is gone."""

Progress = Callable[[float, str], None]
"""Told the share done (0 to 1) and the step that begins."""

Build = Callable[[Path, Progress], None]


def run(module: str, folder: Path, progress: Progress) -> None:
    """Run ``python -m module folder`` and wait for its end.

    The module calls ``serve``. What it raises is raised here: ``EmbeddingFailed`` with its message
    and code, or ``OSError`` with its number. An error of ``progress`` ends the child and goes on.
    """
    with subprocess.Popen(  # noqa: S603 (a constant command of ours)
        [sys.executable, "-m", module, str(folder.resolve())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    ) as child:
        try:
            for line in child.stdout or ():
                _heard(json.loads(line), progress)
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise EmbeddingFailed(
            f"Preparing the model ended with status {child.returncode}.", code="model_load_failed"
        )


def serve(build: Build, folder: Path) -> None:
    """The child's side: build, telling steps and a failure."""
    Thread(target=_end_with, args=(sys.stdin,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    try:
        build(folder, lambda share, step: _tell({"share": share, "step": step}))
    except EmbeddingFailed as error:
        _tell({"message": str(error), "code": error.code})
    except OSError as error:
        _tell({"errno": error.errno or 0, "message": error.strerror or type(error).__name__})
    except Exception as error:  # libraries raise their own types; the parent shows only the name
        reason = f"The model cannot be prepared ({type(error).__name__})."
        _tell({"message": reason, "code": "model_load_failed"})


def _heard(line: dict[str, str | float], progress: Progress) -> None:
    if "step" in line:
        progress(float(line["share"]), str(line["step"]))
    elif "errno" in line:
        raise OSError(int(line["errno"]), str(line["message"]))
    else:
        raise EmbeddingFailed(str(line["message"]), code=str(line["code"]))


def _tell(line: dict[str, str | float]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _end_with(parent: IO[str]) -> None:
    parent.read()
    os._exit(ORPHANED)
