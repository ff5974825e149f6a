"""kill -9 around a webhook: what was committed is sent by the next process, what was not is not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from engine.testing.fake_provider import Answer, serving
from memory.tests.own_stack import environment

DEADLINE_S = 60


def _child(step: str, home: Path, port: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "memory.tests.killable_webhook", step, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=home,
        env=environment(home),
    )


def test_events_outlive_the_process_that_noted_or_was_sending_them(tmp_path: Path) -> None:
    with serving() as provider:
        provider.respond = lambda request: Answer(204)
        provider.script.append(Answer(is_silent=True))
        with _child("begin", tmp_path, provider.port) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == "sending\n"
            while not provider.requests:
                assert first.poll() is None
            first.send_signal(signal.SIGKILL)
            assert first.wait(DEADLINE_S) == -signal.SIGKILL
        with _child("finish", tmp_path, provider.port) as second:
            answer, _errors = second.communicate(timeout=DEADLINE_S)
        assert second.returncode == 0
        bodies = [json.loads(request.body) for request in provider.requests]
        ids = [request.headers["webhook-id"] for request in provider.requests]
    keys = [body["data"]["memories"][0]["memory"]["key"] for body in bodies]
    assert json.loads(answer) == {"waiting": 2, "states": ["sent", "sent"]}
    assert keys == ["first", "first", "second"], "at least once, and never what was rolled back"
    assert ids[0] == ids[1], "by the same id, so that the receiver knows"
