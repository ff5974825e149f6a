"""``manage.py studio`` as a person meets it: a process that starts, serves and stops."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


class Studio:
    """A studio in a process of its own."""

    def __init__(self, home: Path, port: int, *options: str) -> None:
        self.home, self.port = home, port
        self.url = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "MEMORY_STUDIO_HOME": str(home)}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "studio", "--port", str(port), *options],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_up(self) -> str:
        """What was printed, up to the last line of the greeting."""
        lines = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                return "".join(lines)
        raise AssertionError(self.end()[1])

    def stop(self, number: int) -> tuple[int, str]:
        """Send a signal; the exit code and what else was printed."""
        self.process.send_signal(number)
        return self.end()

    def end(self) -> tuple[int, str]:
        """Wait for the process to end; the exit code and what it has printed since."""
        out, error = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, out + error


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Studio, str]]:
    """A studio that serves, and its greeting."""
    studio = Studio(tmp_path_factory.mktemp("running"), free_port())
    try:
        yield studio, studio.wait_until_up()
    finally:
        studio.stop(signal.SIGKILL)


@pytest.fixture
def port() -> int:
    return free_port()


def test_its_pages_and_files_carry_the_policy_and_are_always_asked_for(
    running: tuple[Studio, str],
) -> None:
    url = running[0].url
    with urllib.request.urlopen(f"{url}/signin/") as page:
        assert page.status == 200
        assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    with urllib.request.urlopen(f"{url}/static/vendor/htmx.min.js") as file:
        assert file.headers["Cache-Control"] == "max-age=0, public"
        assert file.headers["ETag"]


def test_its_link_signs_in_once(running: tuple[Studio, str]) -> None:
    studio, greeting = running
    link = greeting.split("works once: ")[1].split()[0]
    assert link.startswith(f"{studio.url}/signin/")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(link) as page:
        assert page.url == f"{studio.url}/"
    stranger = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with pytest.raises(urllib.error.HTTPError) as refused:
        stranger.open(link)
    refused.value.close()
    assert refused.value.code in (403, 404, 410)


def test_a_second_studio_on_the_same_home_is_one_sentence(running: tuple[Studio, str]) -> None:
    home = running[0].home
    code, said = Studio(home, free_port()).end()
    assert code == 1
    assert said.startswith(f"memory studio: Memory Studio already runs on {home} (process")
    assert said.count("\n") == 1


def test_a_busy_port_is_one_sentence(running: tuple[Studio, str], tmp_path: Path) -> None:
    port = running[0].port
    code, said = Studio(tmp_path, port).end()
    assert code == 1
    assert said == (
        f"memory studio: Port {port} is in use; "
        "stop the other program, or choose a port with --port.\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_without_noise(port: int, tmp_path: Path, number: int) -> None:
    studio = Studio(tmp_path, port)
    studio.wait_until_up()
    assert studio.stop(number) == (0, "")


def test_a_killed_studio_leaves_nothing_in_the_way(port: int, tmp_path: Path) -> None:
    first = Studio(tmp_path, port)
    first.wait_until_up()
    first.stop(signal.SIGKILL)
    again = Studio(tmp_path, port)
    again.wait_until_up()
    assert again.stop(signal.SIGINT) == (0, "")


def test_a_home_that_cannot_be_written_is_one_sentence(port: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    code, said = Studio(file, port).end()
    assert code == 1
    assert said.startswith(f"memory studio: Cannot write to {file}")
    assert said.count("\n") == 1


def test_a_damaged_database_is_one_sentence(port: int, tmp_path: Path) -> None:
    (tmp_path / "studio.sqlite3").write_bytes(b"this is not a database" * 100)
    code, said = Studio(tmp_path, port).end()
    assert code == 1
    assert said.startswith("memory studio: The database")
    assert said.count("\n") == 1


def test_an_odd_setting_is_one_sentence(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_RRF_K", "many")
    code, said = Studio(tmp_path, port).end()
    assert (code, said) == (1, "memory studio: MEMORY_RRF_K must be a whole number, not 'many'.\n")


def test_a_database_server_that_is_not_there_is_one_sentence(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://user:word@127.0.0.1:1/name")
    code, said = Studio(tmp_path, port).end()
    assert code == 1
    assert said.startswith("memory studio: The database name on 127.0.0.1:1 cannot be used")
    assert "refused" in said
    assert "word" not in said
    assert said.count("\n") == 1


def test_whoever_watches_it_needs_no_sign_in_and_learns_no_detail(
    running: tuple[Studio, str],
) -> None:
    for path in ("/healthz", "/readyz"):
        probe = urllib.request.Request(running[0].url + path, headers={"Host": "10.1.2.3"})
        with urllib.request.urlopen(probe) as answer:
            assert (answer.status, answer.read()) == (200, b"ok\n")
