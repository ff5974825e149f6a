"""Two webs and a vaultd on one Postgres and one Redis, each a process with a home of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from engine.testing import postgres_server, redis_server
from engine.testing.postgres_server import PostgresServer
from memory.tests.own_stack import DROPPED
from memstudio.tests.test_studio import DEADLINE_S, ROOT, free_port

PASSPHRASE = "correct horse battery"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_MAKE_KEYS = """
import json
from memory.principal import SYSTEM
from memory.services import keys
names = ("alice", "bob")
print(json.dumps({name: keys.create(SYSTEM, name, scopes=["read", "write"])[1] for name in names}))
"""


class Started:
    """A process that serves; what it says goes to a file."""

    def __init__(self, arguments: list[str], port: int, log: Path, env: dict[str, str]) -> None:
        self.port, self.log = port, log
        self.url = f"http://127.0.0.1:{port}"
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=ROOT,
                env=env,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    def greeting(self) -> str:
        """What it printed, once it serves."""
        said = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said += line
            if "Ctrl-C" in line:
                return said
        raise AssertionError(self.log.read_text())

    def end(self, number: int) -> int:
        """Send a signal and wait; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode


class Stack:
    """The processes, and the ways to talk to them."""

    def __init__(self, folder: Path, postgres: PostgresServer, redis: str) -> None:
        self.folder, self.postgres, self.redis = folder, postgres, redis
        self.database = postgres.create("keeping")
        self.vaultd_port = free_port()
        self.started: list[Started] = []
        self.secrets: dict[str, str] = json.loads(self._manage("shell", "-c", _MAKE_KEYS))
        self.vaultd = self.start_vaultd()
        self.vaultd.greeting()
        self.webs = [self._web(name) for name in ("one", "two")]
        greetings = [web.greeting() for web in self.webs]
        self.link = re.findall(r"works once: (\S+)", greetings[1])[0]

    def environment(self, name: str) -> dict[str, str]:
        """The variables of a process, as on a host of its own."""
        kept = {key: value for key, value in os.environ.items() if key not in DROPPED}
        return kept | {
            "MEMORY_STUDIO_HOME": str(self.folder / name),
            "MEMORY_STUDIO_SECRET_KEY": "the same on every host",
            "MEMORY_STUDIO_ENCRYPTION_KEY": "c2FtZXNhbWVzYW1lc2FtZXNhbWVzYW1lc2FtZXNhbWU=",
            "MEMORY_STUDIO_VAULT_MEMORY_MIB": "19",
            "MEMORY_STUDIO_VAULTD": f"http://127.0.0.1:{self.vaultd_port}",
            "DATABASE_URL": self.database,
            "REDIS_URL": self.redis,
        }

    def start_vaultd(self, name: str = "vaultd", port: int | None = None) -> Started:
        """Another one; the webs know the port of the first."""
        port = port or self.vaultd_port
        return self._start(["vaultd", "--listen", f"127.0.0.1:{port}"], port, name)

    def command(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command on a host of these webs."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment("one") | variables,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def api(self, web: int, path: str, body: Any = None, *, who: str = "alice") -> httpx2.Response:
        """One request of REST below ``/api/vaults`` to one of the webs."""
        headers = {"Authorization": f"Bearer {self.secrets[who]}"}
        method = "GET" if body is None else "POST"
        url = f"{self.webs[web].url}/api/vaults{path}"
        return httpx2.request(method, url, json=body, headers=headers, timeout=60)

    def search(self, web: int, vault: str, query: str = "refunds") -> tuple[int, str]:
        """Status and outcome of a search: the title of the first hit, or the code of the error."""
        answer = self.api(web, f"/{vault}/search", {"query": query, "mode": "bm25"})
        told = answer.json()
        if answer.status_code != 200:
            return answer.status_code, told["error"]["code"]
        return 200, told["results"][0]["title"] if told["results"] else ""

    def unlock(self, web: int, vault: str) -> int:
        """Unlock with the passphrase; the status."""
        return self.api(web, f"/{vault}/unlock", {"passphrase": PASSPHRASE}).status_code

    def call_tool(self, web: int, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool of MCP."""
        headers = JSON | {"Authorization": f"Bearer {self.secrets['alice']}"}
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        url = f"{self.webs[web].url}/mcp"
        answer = httpx2.post(url, json=body, headers=headers, timeout=60)
        assert answer.status_code == 200, answer.text
        data = answer.text.partition("data: ")[2] or answer.text
        result: dict[str, Any] = json.loads(data.splitlines()[0])["result"]
        return result

    @contextlib.contextmanager
    def browser(self, web: int) -> Iterator[httpx2.Client]:
        """Somebody who is signed in; the link works once, the session in every web."""
        with httpx2.Client(base_url=self.webs[web].url, timeout=60) as client:
            if self.link:
                assert client.get(self.link).status_code == 302
                self._cookies, self.link = dict(client.cookies), ""
            client.cookies.update(self._cookies)
            yield client

    def close(self) -> None:
        """End every process."""
        for each in self.started:
            each.end(signal.SIGKILL)

    def _web(self, name: str) -> Started:
        port = free_port()
        return self._start(["studio", "--port", str(port)], port, name)

    def _start(self, arguments: list[str], port: int, name: str) -> Started:
        log = self.folder / f"{name}.log"
        process = Started(arguments, port, log, self.environment(name))
        self.started.append(process)
        return process

    def _manage(self, *arguments: str) -> str:
        assert self.command("prepare").returncode == 0
        done = self.command(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Stack]:
    """All of it; gone at the end."""
    with postgres_server.running() as postgres, redis_server.running() as redis:
        stack = Stack(folder, postgres, redis.url)
        try:
            yield stack
        finally:
            stack.close()
