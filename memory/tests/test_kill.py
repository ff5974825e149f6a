"""kill -9 in the middle of a job: the next process goes on, and nothing is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memory.services.embedding import BATCH
from memory.tests.killable import BATCHES_BEFORE_THE_KILL, COUNT
from memory.tests.own_stack import environment

DEADLINE_S = 60


def _start(home: Path, *steps: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "memory.tests.killable", *steps],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=home,
        env=environment(home),
    )


@pytest.mark.parametrize("where", [(), ("vault",)], ids=["memories", "an open vault"])
def test_a_killed_job_is_finished_by_the_next_process(
    where: tuple[str, ...], tmp_path: Path
) -> None:
    with _start(tmp_path, "begin", *where) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready to be killed\n"
        first.send_signal(signal.SIGKILL)
        assert first.wait(DEADLINE_S) == -signal.SIGKILL
    with _start(tmp_path, "finish", *where) as second:
        answer, _errors = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0
    done = BATCHES_BEFORE_THE_KILL * BATCH
    assert json.loads(answer) == {
        "before": done,
        "freed": 1,
        "sent": 1,
        "state": "succeeded",
        "attempts": 2,
        "passages": COUNT,
        "embedded_now": COUNT - done,
        "percent": 100.0,
        "first": "note95 of tea",
        "found": COUNT,
    }
