"""Areas of installing models: adapters run the installer against a small server on loopback."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.embed import catalogue
from engine.models_install.download import Downloader, Wanted
from engine.models_install.errors import InstallFailed
from engine.models_install.origin import DOWNLOADS
from engine.net.client import HttpClient, Limits
from engine.testing.fake_provider import Answer, Provider, Request, serving
from memory.cases.registry import Case, CaseFile, adapter

BODY: Final = bytes(range(256)) * 40
PART: Final = 1000
LATE_S: Final = 901.0


@adapter("model_manifest")
def model_manifest(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The files of the catalogue for a repository at a revision."""
    asked = case["input"]
    entry = next(
        entry
        for entry in catalogue.entries()
        if (entry.repository, entry.revision) == (asked["repo"], asked["revision"])
    )
    return {
        "files": [
            {"path": file.path, "bytes": file.bytes, "sha256": file.sha256} for file in entry.files
        ],
        "total_bytes": entry.bytes,
        "total_mib": round(entry.bytes / 2**20, 1),
    }


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What one download did."""

    error: str
    requests: int
    resumed_from: int
    wanted: Wanted
    is_untouched: bool

    def say(self) -> str:
        """In the words of the cases."""
        if self.error:
            return self._failure()
        if not self.requests:
            return "reused, no request"
        is_right = hashlib.sha256(self.wanted.path.read_bytes()).hexdigest() == self.wanted.sha256
        how = "resumed" if self.resumed_from else "restarted from 0"
        if not is_right:
            return f"{how}, wrong file"
        return f"{how}, final hash checked" if self.resumed_from else how

    def _failure(self) -> str:
        has_part = self.wanted.part.exists()
        if self.error == "model_file_mismatch":
            state = "file left as it was" if self.is_untouched else "file changed"
            return f"error {self.error}; {state}"
        if self.error == "range_mismatch":
            return "error, partial kept" if has_part else "error, partial dropped"
        if self.error == "response_too_large":
            return "stopped at size+1, error"
        if self.error == "timeout":
            return f"error timeout; partial {'kept for resume' if has_part else 'dropped'}"
        return f"error {self.error}, {'not retried' if self.requests == 1 else 'retried'}"


@adapter("model_install")
def model_install(case: Case, _file: CaseFile) -> dict[str, str]:
    """One file, from a server that misbehaves as the case says."""
    asked = case["input"]
    with tempfile.TemporaryDirectory() as folder, serving() as provider:
        url = f"http://127.0.0.1:{provider.port}/name"
        wanted = Wanted(url, Path(folder) / "name", len(BODY), hashlib.sha256(BODY).hexdigest())
        before = _existing(asked.get("existing", ""))
        if before is not None:
            wanted.path.write_bytes(before)
        if "partial" in asked:
            wanted.part.write_bytes(BODY[:PART])
        provider.respond = lambda request: _answer(asked, request)
        error = _fetched(wanted, "elapsed" in asked)
        is_untouched = before is not None and wanted.path.read_bytes() == before
        outcome = _Outcome(error, len(provider.requests), _start(provider), wanted, is_untouched)
        return {"result": outcome.say()}


def _existing(what: str) -> bytes | None:
    if not what:
        return None
    if "wrong hash" in what:
        return BODY[::-1]
    return BODY[:-1] if "shorter" in what else BODY


def _fetched(wanted: Wanted, is_late: bool) -> str:
    """The code of the error, empty when the file is there."""
    client = HttpClient(DOWNLOADS)
    moments = iter([0.0, 0.0, LATE_S])
    options: dict[str, Callable[[], float]] = {"clock": lambda: next(moments)} if is_late else {}
    downloader = Downloader(client, Limits(total_s=900.0), wait=lambda _: None, **options)
    try:
        downloader.fetch(wanted, lambda _: None)
    except InstallFailed as error:
        return error.code
    finally:
        client.close()
    return ""


def _answer(asked: dict[str, Any], request: Request) -> Answer:
    server = asked.get("server", "")
    start = int(request.headers.get("range", "bytes=0-")[len("bytes=") : -1])
    if "elapsed" in asked:
        return Answer(200, BODY[:PART], breaks=True)
    if "redirect" in server or server.startswith("30"):
        target = "http://remote.example/name" if "http remote" in server else "/elsewhere"
        is_moved = request.path == "/elsewhere"
        return Answer(200, BODY) if is_moved else Answer(302, headers={"Location": target})
    if "longer" in server:
        return Answer(200, BODY + b"!")
    if server.startswith("200") or not start:
        return Answer(200, BODY)
    told = start + 1 if "different" in server else start
    return Answer(206, BODY[told:], {"Content-Range": f"bytes {told}-{len(BODY) - 1}/{len(BODY)}"})


def _start(provider: Provider) -> int:
    """The last start that was asked for and served as a range."""
    if not provider.requests or "range" not in provider.requests[-1].headers:
        return 0
    served = provider.respond(provider.requests[-1])
    return PART if served.status == 206 else 0
