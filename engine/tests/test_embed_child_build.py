"""A model is built in a child process: its steps, its failures, and its end."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.embed import child_build
from engine.errors import Cancelled, EmbeddingFailed

ECHO = "engine.testing.child_builder"
PARENT = """
import sys
from pathlib import Path
from engine.embed import child_build
child_build.run("engine.testing.child_builder", Path(sys.argv[1]), lambda share, step: print(step))
"""


def ignore(_share: float, _step: str) -> None:
    pass


def test_steps_are_heard_in_order_and_files_are_written(tmp_path: Path) -> None:
    heard: list[tuple[float, str]] = []
    child_build.run(ECHO, tmp_path, lambda share, step: heard.append((share, step)))
    assert heard == [(0.0, "begin"), (1.0, "done")]
    assert (tmp_path / "model").read_text() == "weights"


def test_the_child_gives_way_to_the_process_that_answers(tmp_path: Path) -> None:
    child_build.run(ECHO, tmp_path, ignore)
    assert int((tmp_path / "niceness").read_text()) >= min(os.nice(0) + child_build.NICENESS, 19)


def test_a_failure_keeps_its_message_and_code(tmp_path: Path) -> None:
    (tmp_path / "fail").write_text("embedding")
    with pytest.raises(EmbeddingFailed, match="wrong file") as caught:
        child_build.run(ECHO, tmp_path, ignore)
    assert caught.value.code == "model_load_failed"


def test_a_full_disk_is_an_os_error_here_too(tmp_path: Path) -> None:
    (tmp_path / "fail").write_text("disk")
    with pytest.raises(OSError, match="No space left") as caught:
        child_build.run(ECHO, tmp_path, ignore)
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize(
    ("way", "said"), [("library", r"prepared \(ValueError\)"), ("killed", "status -9")]
)
def test_any_other_end_is_said(tmp_path: Path, way: str, said: str) -> None:
    (tmp_path / "fail").write_text(way)
    with pytest.raises(EmbeddingFailed, match=said) as caught:
        child_build.run(ECHO, tmp_path, ignore)
    assert caught.value.code == "model_load_failed"


def test_a_callers_stop_ends_the_child(tmp_path: Path) -> None:
    (tmp_path / "fail").write_text("hang")

    def stop(_share: float, _step: str) -> None:
        raise Cancelled()

    with pytest.raises(Cancelled):
        child_build.run(ECHO, tmp_path, stop)
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "fail").write_text("hang")
    with subprocess.Popen(
        [sys.executable, "-u", "-c", PARENT, str(tmp_path)],
        cwd=child_build.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "begin\n"
        parent.send_signal(signal.SIGKILL)
    with (tmp_path / "lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # the child holds it as long as it lives
    assert parent.returncode < 0


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
