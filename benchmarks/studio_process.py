"""A studio of its own in a temporary home, signed in like a person."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

File = tuple[str, bytes, str]
"""Name, content and media type."""

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Studio:
    """A running studio: its address, a signed-in client, and how long it took to serve."""

    url: str
    client: httpx.Client
    started_s: float

    def post_form(
        self, path: str, data: Mapping[str, str], files: Mapping[str, File]
    ) -> httpx.Response:
        """Send a form of the studio with its CSRF token."""
        page = self.client.get(path).text
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        token = found[1] if found else ""
        sent = {"csrfmiddlewaretoken": token, **data}
        return self.client.post(path, data=sent, files=files, headers={"Referer": self.url})


@contextmanager
def studio() -> Iterator[Studio]:
    """Start one, sign in by the printed link, stop it as Ctrl-C does."""
    with tempfile.TemporaryDirectory(prefix="memory-studio-bench-") as home:
        started = time.perf_counter()
        with serving({**os.environ, "MEMORY_STUDIO_HOME": home}) as (url, link):
            took_s = time.perf_counter() - started
            with httpx.Client(base_url=url, timeout=60, follow_redirects=True) as client:
                client.get(link).raise_for_status()
                yield Studio(url, client, took_s)


@contextmanager
def serving(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A studio in this environment: its address, and the link that signs in."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "studio", "--port", str(port)],
        cwd=ROOT,
        env=dict(environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield f"http://127.0.0.1:{port}", _link(process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        if process.stdout:
            process.stdout.close()


def _link(process: subprocess.Popen[str]) -> str:
    for line in process.stdout or ():
        if found := re.search(r"http://\S+/signin/\S+", line):
            return found[0]
    raise RuntimeError("the studio did not start")
