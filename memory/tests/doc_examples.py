"""The fenced examples of the documents, and how each is run.

What is to be done with an example stands in a comment above its fence, which no reader sees:

- ``<!-- not run: reason -->``: it cannot run here.
- ``<!-- run: PUT /api/settings/memory -->``: the JSON is the body of this request, which succeeds.
- ``<!-- answer -->``: the JSON is what the example before it answers. What is shown must be there;
  ``…`` stands for any text, number or list.

Without one, ``sh`` is run by bash with a ``curl`` that fails on refusals, JSON must be JSON, and
Python must compile.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

ROOT: Final = Path(settings.BASE_DIR)
ADDRESS: Final = "http://127.0.0.1:8765"
"""The address that the documents show."""

_FENCE: Final = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<lang>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
_CURL: Final = Path(__file__).with_name("doc_curl.py")


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced block: where it is, its language, and the comment above it."""

    page: str
    line: int
    lang: str
    text: str
    note: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def request(self) -> tuple[str, str] | None:
        """Method and path that the block is the body of."""
        found = re.fullmatch(r"run: (\w+) (/\S+)", self.note)
        return (found[1], found[2]) if found else None

    @property
    def is_left_out(self) -> bool:
        """Whether it says that it cannot run here, and why."""
        return bool(re.fullmatch(r"not run: \S.{10,}", self.note))


def examples(page: Path) -> list[Example]:
    """The examples of a document, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Example(
            page=page.relative_to(ROOT).as_posix(),
            line=text.count("\n", 0, found.start()) + 1,
            lang=found["lang"],
            text=found["text"],
            note=found["note"] or "",
        )
        for found in _FENCE.finditer(text)
    ]


@dataclass(frozen=True, slots=True)
class Shell:
    """A folder with ``manage.py`` and a ``curl`` that refuses, in front of a running studio."""

    folder: Path
    url: str
    key: str
    environ: dict[str, str]

    def prepare(self) -> None:
        """Make the folder what the documents think one is in."""
        (self.folder / ".venv" / "bin").mkdir(parents=True)
        (self.folder / "manage.py").symlink_to(ROOT / "manage.py")
        python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
        curl = f'#!/bin/sh\nexec {sys.executable} {_CURL} "$@"\n'
        for name, text in (("python", python), ("curl", curl)):
            path = self.folder / ".venv" / "bin" / name
            path.write_text(text, encoding="utf-8")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, script: str) -> str:
        """Standard output of a script; an ``AssertionError`` with all it said when it fails."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(ADDRESS, self.url)],
            cwd=self.folder,
            env={
                **self.environ,
                "KEY": self.key,
                "PATH": f"{self.folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def send(self, method: str, path: str, body: str) -> Any:
        """The answer to a request with a JSON body."""
        request = urllib.request.Request(
            self.url + path,
            data=body.encode(),
            method=method,
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


def differences(shown: Any, real: Any, place: str = "answer") -> list[str]:
    """Where a real answer is not what the document shows; empty when it is."""
    if isinstance(shown, str) and "…" in shown and isinstance(real, str | int | float | list):
        pattern = ".*".join(map(re.escape, shown.split("…")))
        is_like = re.fullmatch(pattern, str(real), re.S)
        return [] if is_like else [f"{place}: {real!r} is not {shown!r}"]
    if isinstance(shown, dict) and isinstance(real, dict):
        missing = [f"{place}.{name}: not there" for name in shown if name not in real]
        return missing + [
            problem
            for name in shown
            if name in real
            for problem in differences(shown[name], real[name], f"{place}.{name}")
        ]
    if isinstance(shown, list) and isinstance(real, list):
        if shown and shown[-1] == "…":
            shown, real = shown[:-1], real[: len(shown) - 1]
        if len(shown) != len(real):
            return [f"{place}: {len(real)} instead of {len(shown)}"]
        pairs = enumerate(zip(shown, real, strict=True))
        return [found for n, pair in pairs for found in differences(*pair, f"{place}[{n}]")]
    is_same = shown == real and isinstance(shown, bool) is isinstance(real, bool)
    return [] if is_same else [f"{place}: {real!r} is not {shown!r}"]
