"""Clients that store memories over HTTP until each is acknowledged, whatever happens meanwhile."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

RETRY_S: Final = 0.2
TIMEOUT_S: Final = 30.0
MODEL: Final = "use-multilingual"
"""The light packaged model: a real one, and about 2 ms a text."""
SCOPES: Final = ("read", "write")
IMPORTED: Final = 200
IMPORT_EVERY_S: Final = 2.0


@dataclass(slots=True)
class Tally:
    """What the clients met; threads add to it."""

    acknowledged: int = 0
    retries: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stored(self) -> None:
        """One more is acknowledged."""
        with self._lock:
            self.acknowledged += 1

    def again(self, why: str) -> None:
        """A request came to nothing and is sent again."""
        with self._lock:
            self.retries[why] = self.retries.get(why, 0) + 1

    def refuse(self, why: str) -> None:
        """An answer that no retry would change."""
        with self._lock:
            self.refused.append(why)


def word(place: int) -> str:
    """A word that only this memory has, made of letters."""
    letters = "bcdfghjklmnprstv"
    return "zq" + "".join(letters[(place >> shift) & 15] for shift in (16, 12, 8, 4, 0)) + "x"


def text(place: int) -> str:
    """What is stored under the key of this place."""
    return f"Visitor {word(place)} asked about tea number {place} and will come back on a Sunday."


def key(place: int) -> str:
    """Its key."""
    return f"visit:{place}"


class Clients:
    """As many as there are secrets; each has memories of its own and both webs to send them to."""

    def __init__(self, webs: list[str], secrets: list[str], total: int) -> None:
        self._webs, self.secrets, self.total = webs, secrets, total
        self.tally = Tally()

    def places(self, client: int) -> range:
        """Which memories are this client's."""
        return range(client, self.total, len(self.secrets))

    def run(self) -> None:
        """Store everything."""
        with ThreadPoolExecutor(len(self.secrets)) as pool:
            list(pool.map(self._store_all, range(len(self.secrets))))

    def _store_all(self, client: int) -> None:
        with Caller(self._webs, self.secrets[client], self.tally, first=client) as caller:
            for place in self.places(client):
                caller.post("/api/memory", {"key": key(place), "content": text(place)})
                self.tally.stored()


class Caller:
    """Sends a request to one web after another until it is answered."""

    def __init__(self, webs: list[str], secret: str, tally: Tally, *, first: int = 0) -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        self._clients = [httpx.Client(base_url=url, headers=headers) for url in webs]
        self._tally, self._turn = tally, first

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_error: object) -> None:
        for client in self._clients:
            client.close()

    def post(self, path: str, body: dict[str, object]) -> httpx.Response:
        """The answer of the first web that gives one."""
        return self._ask("POST", path, body)

    def get(self, path: str) -> httpx.Response:
        """The same for a page."""
        return self._ask("GET", path, None)

    def _ask(self, method: str, path: str, body: dict[str, object] | None) -> httpx.Response:
        pause = threading.Event()
        while True:
            client = self._clients[self._turn % len(self._clients)]
            try:
                answer = client.request(method, path, json=body, timeout=TIMEOUT_S)
            except httpx.HTTPError as error:
                self._tally.again(type(error).__name__)
            else:
                if answer.status_code < 400:
                    return answer
                if answer.status_code < 500:
                    self._tally.refuse(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
                    return answer
                self._tally.again(str(answer.status_code))
            self._turn += 1
            pause.wait(RETRY_S)


class Studio:
    """A person who is signed in: chooses the model, makes keys, imports files."""

    def __init__(self, webs: list[str], log: Path) -> None:
        """``log`` holds the link that the first web has printed."""
        link = re.search(r"http://\S+/signin/\S+", log.read_text())
        if link is None:
            raise RuntimeError("the studio printed no link")
        self._webs = webs
        self._client = httpx.Client(follow_redirects=True, timeout=TIMEOUT_S)
        page = self._client.get(link[0]).raise_for_status().text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        self._client.headers.update({"X-CSRFToken": token[1] if token else ""})

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def prepare(self, clients: int) -> list[str]:
        """Choose the light model, and make a key for each client; their secrets."""
        url, headers = self._webs[0], {"Referer": self._webs[0]}
        settings = {"localModel": MODEL}
        self._client.put(
            f"{url}/api/settings/memory", json=settings, headers=headers
        ).raise_for_status()
        made = []
        for client in range(clients):
            body = {"name": f"client {client}", "scopes": SCOPES}
            answer = self._client.post(f"{url}/api/keys", json=body, headers=headers)
            made.append(answer.raise_for_status().json()["secret"])
        return made

    def import_files(self, files: int, tally: Tally) -> None:
        """Upload files of memories, one after another, each until it is acknowledged."""
        pause = threading.Event()
        for number in range(files):
            lines = (json.dumps(record) for record in records(number))
            upload = {"file": ("part.jsonl", "\n".join(lines).encode(), "application/json")}
            turn = number
            while True:
                url = self._webs[turn % len(self._webs)]
                try:
                    self._client.post(
                        f"{url}/memories/import/",
                        data={"owner": ""},
                        files=upload,
                        headers={"Referer": url},
                    ).raise_for_status()
                except httpx.HTTPError as error:
                    tally.again(f"import: {type(error).__name__}")
                    turn += 1
                    pause.wait(RETRY_S)
                else:
                    break
            pause.wait(IMPORT_EVERY_S)


def records(number: int) -> list[dict[str, str]]:
    """The memories of one file."""
    return [
        {
            "key": f"import:{number}:{place}",
            "content": f"Line {place} of the imported file {number}",
        }
        for place in range(IMPORTED)
    ]
