"""Downloads one file: resumed by range, retried, bounded, checked, and renamed when it is right."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.embed.packaged import sha256
from engine.models_install.errors import InstallFailed
from engine.net.client import HttpClient, Limits, Streamed, Wait, pause
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.retry import delay_ms

PART = ".part"
MAX_REDIRECTS = 5
RANGE = re.compile(r"bytes (\d+)-\d*(?:/(?:\d+|\*))?")
PARTIAL_CONTENT = 206
RANGE_NOT_SATISFIABLE = 416

Heard = Callable[[int], None]
"""Told how many bytes of the file are there. May raise (``Cancelled``): what is there stays."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file: where from, where to, and what it must be."""

    url: str
    path: Path
    bytes: int
    sha256: str

    @property
    def part(self) -> Path:
        """What is there of it so far."""
        return self.path.with_name(self.path.name + PART)


@dataclass(frozen=True, slots=True)
class Downloader:
    """How to download. ``limits.total_s`` is for one file, all its attempts together."""

    client: HttpClient
    limits: Limits = field(default_factory=lambda: Limits(total_s=900.0))
    wait: Wait = pause
    clock: Callable[[], float] = time.monotonic

    def fetch(self, wanted: Wanted, heard: Heard) -> bool:
        """Make the file be there; False when it was already.

        A file of that name is never replaced. Raises ``InstallFailed``.
        """
        if wanted.path.exists():
            _check_existing(wanted)
            heard(wanted.bytes)
            return False
        wanted.path.parent.mkdir(parents=True, exist_ok=True)
        if _size(wanted.part) != wanted.bytes or sha256(wanted.part) != wanted.sha256:
            self._retried(wanted, heard)
        _publish(wanted)
        return True

    def _retried(self, wanted: Wanted, heard: Heard) -> None:
        ends, attempt = self.clock() + self.limits.total_s, 0
        while True:
            left = ends - self.clock()
            try:
                if left <= 0:
                    raise HttpFailed("The download took too long.", code="timeout")
                return self._attempt(wanted, heard, left)
            except HttpFailed as error:
                # Without the piece at hand the same request makes sense again.
                is_stale = error.status == RANGE_NOT_SATISFIABLE and wanted.part.exists()
                if is_stale or error.code == "response_too_large":
                    wanted.part.unlink(missing_ok=True)
                over = left <= 0 or attempt >= self.limits.retries
                if over or not (error.is_retried or is_stale):
                    raise InstallFailed(_said(error), code=error.code) from error
                asked = error.retry_after
            self.wait(delay_ms(attempt, backoff_ms=self.limits.backoff_ms, retry_after=asked) / 1e3)
            attempt += 1

    def _attempt(self, wanted: Wanted, heard: Heard, left: float) -> None:
        start = _size(wanted.part)
        if start >= wanted.bytes:
            wanted.part.unlink()
            start = 0
        limits = Limits(
            connect_s=min(self.limits.connect_s, left),
            total_s=left,
            retries=0,
            max_bytes=wanted.bytes,
        )
        headers = {"Range": f"bytes={start}-"} if start else {}
        try:
            with self.client.stream(
                wanted.url, headers=headers, limits=limits, max_redirects=MAX_REDIRECTS
            ) as answer:
                _receive(answer, wanted, start, heard)
        except UrlBlocked as error:
            raise _blocked(error) from error


def _receive(answer: Streamed, wanted: Wanted, start: int, heard: Heard) -> None:
    if answer.status == PARTIAL_CONTENT:
        _check_range(answer, wanted, start)
    else:
        start = 0
    size = start
    with wanted.part.open("r+b" if start else "wb") as stream:
        stream.seek(start)
        stream.truncate()
        for chunk in answer.chunks:
            size += len(chunk)
            if size > wanted.bytes:
                raise HttpFailed("The file is longer than it should be.", code="response_too_large")
            stream.write(chunk)
            heard(size)
        stream.flush()
        os.fsync(stream.fileno())
    if size < wanted.bytes:
        raise HttpFailed("The file ended early.", code="connect_failed")


def _check_range(answer: Streamed, wanted: Wanted, start: int) -> None:
    told = RANGE.fullmatch(answer.headers.get("content-range", "").strip())
    if told is None or int(told[1]) != start:
        wanted.part.unlink(missing_ok=True)
        raise InstallFailed(
            "The server sent another part of the file than was asked for.", code="range_mismatch"
        )


def _check_existing(wanted: Wanted) -> None:
    if _size(wanted.path) != wanted.bytes or sha256(wanted.path) != wanted.sha256:
        raise InstallFailed(
            f"The file {wanted.path.name} that is already there is not the one of the catalogue; "
            "it is left as it is.",
            code="model_file_mismatch",
        )


def _publish(wanted: Wanted) -> None:
    """Give the file its name, once it is the right one."""
    if sha256(wanted.part) != wanted.sha256:
        wanted.part.unlink()
        raise InstallFailed(
            f"The downloaded file {wanted.path.name} is not the one of the catalogue; "
            "it was thrown away.",
            code="model_hash_mismatch",
        )
    wanted.part.replace(wanted.path)


def _blocked(error: UrlBlocked) -> InstallFailed:
    """The first URL was judged before, so what is refused now is where it led to."""
    if error.reason == "dns_failed":
        return InstallFailed("The name of the server is not known.", code="connect_failed")
    if error.reason == "bad_proxy":
        return InstallFailed("The proxy's address is not usable.", code="url_blocked")
    return InstallFailed(
        f"The download leads to an address that is not allowed ({error.reason}).",
        code="unsafe_redirect",
    )


def _said(error: HttpFailed) -> str:
    if error.code == "response_too_large":
        return "The file is longer than it should be; it was thrown away."
    return str(error)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
