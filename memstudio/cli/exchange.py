"""``memory import`` and ``memory export``: files through the studio that runs, or here."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from django.conf import settings

from memstudio import env
from memstudio.cli import files
from memstudio.cli.api import REFUSED, USAGE, Api, Refused

FORMATS: Final = (
    "auto",
    "json",
    "jsonl",
    "csv",
    "markdown",
    "mem0",
    "openmemory",
    "chatgpt",
    "claude",
    "mcp",
)
EXPORTS: Final = ("json", "jsonl", "csv", "markdown")
ENDINGS: Final[Mapping[str, str]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".zip": "markdown",
}
NOTES: Final = (".md", ".markdown")
LOOK_EVERY_S: Final = 0.3
BAR: Final = 24


def write(api: Api, options: Mapping[str, Any]) -> Any:
    """Export to a file, or to standard output, which then holds the export only."""
    path: Path | None = options["file"]
    query = {
        "format": options["format"] or ENDINGS.get(path.suffix.casefold() if path else "", "json"),
        "apiKeyId": options["owner"],
        "type": options["type"],
        "sessionId": options["session"],
        "q": options["q"],
        "state": options["state"],
    }
    pieces = api.download("memory/export", **query)
    if path is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return None
    partial = path.with_name(f"{path.name}.part")
    try:
        with partial.open("wb") as file:
            file.writelines(pieces)
        partial.replace(path)
    except OSError as error:
        raise Refused(REFUSED, _unusable(path, error)) from None
    finally:
        partial.unlink(missing_ok=True)
    return {"written": str(path)}


def read(api: Api, options: Mapping[str, Any]) -> Any:
    """Import a file or a folder of notes, with progress; an owner that is missing is made."""
    path: Path = options["file"]
    query = {
        "format": options["format"],
        "dryRun": "true" if options["dry_run"] else None,
        "apiKeyId": options["owner"],
        "assistant": "true" if options["assistant"] else None,
        "name": path.name[:200],
    }
    if not options["dry_run"]:
        _make_owner(api, options["owner"])
    try:
        with _opened(path) as file:
            size = file.seek(0, 2)
            file.seek(0)
            is_here = not (options["url"] or env.text("MEMORY_STUDIO_URL"))
            if api.is_local or (is_here and size > settings.MEMORY_STUDIO_MAX_BODY_BYTES):
                report = files.import_here(file, options, path.name)
            else:
                report = _through_studio(api, file, query)
    except OSError as error:
        raise Refused(USAGE, _unusable(path, error)) from None
    if report["total"] and report["skipped"] == report["total"]:
        message = f"Nothing could be imported. {' '.join(_problems(report)[:3])}"
        raise Refused(REFUSED, {"code": "nothing_imported", "message": message, "report": report})
    return report


def show_read(report: Mapping[str, Any]) -> list[str]:
    """A report for people."""
    lines = _problems(report)
    if report["dryRun"]:
        lines += [f"would store: {_short(each)}" for each in report.get("sample", ())]
    would = "would be " if report["dryRun"] else ""
    counts = (
        f"{report['imported']:,} {would}imported, {report['updated']:,} {would}updated, "
        f"{report['same']:,} the same, {report['skipped']:,} skipped"
    )
    left = f", {report['leftOut']:,} left out" if report["leftOut"] else ""
    lines.append(f"{report['format']}: {counts}{left} in {report['seconds']:.1f} s")
    if report.get("vectors"):
        lines.append(f"A studio makes their vectors when it starts; or now: {report['vectors']}")
    return lines


def _problems(report: Mapping[str, Any]) -> list[str]:
    return [
        f"{each['file'] + ', ' if each['file'] else ''}{each['unit']} {each['place']}: "
        f"{each['message']}"
        for each in report["problems"]
    ]


def _short(sample: Mapping[str, Any]) -> str:
    text = " ".join(sample["content"].split())
    return f"[{sample['apiKeyName']}] {text if len(text) <= 80 else text[:79] + '…'}"


def _through_studio(api: Api, file: IO[bytes], query: Mapping[str, Any]) -> Any:
    answer = api.upload("memory/import", file, **query)
    if "jobId" not in answer:
        return answer
    job = answer["job"]
    pause = threading.Event()
    try:
        while job["state"] in ("queued", "running"):
            progress(job["done"], job["total"])
            pause.wait(LOOK_EVERY_S)
            job = api.call("GET", f"jobs/{job['id']}")
    except KeyboardInterrupt:
        with contextlib.suppress(Refused):
            api.call("POST", f"jobs/{job['id']}/cancel")
        raise
    if job["state"] != "succeeded":
        message = f"The import is {job['state']}. {job['message']}".strip()
        raise Refused(REFUSED, {"code": job["errorCode"] or job["state"], "message": message})
    progress(job["done"], job["done"])
    return job["result"]


def progress(done: int, total: int) -> None:
    """A bar, where someone watches."""
    if not sys.stderr.isatty():
        return
    filled = BAR * done // total if total else 0
    end = "\n" if done == total > 0 else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {done:,} of {total:,}{end}")


def _make_owner(api: Api, name: str | None) -> None:
    """Make the key that is to own the memories, where the caller may and it is missing."""
    if not name:
        return
    try:
        known = api.call("GET", "keys")["data"]
    except Refused:
        return
    if not any(name in (key["id"], key["name"]) for key in known):
        api.call("POST", "keys", {"name": name})


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if not path.is_dir():
        with path.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as packed:
        _pack(path, packed)
        yield packed


def _pack(folder: Path, packed: IO[bytes]) -> None:
    """The notes of a folder as an archive; links are not followed out of it."""
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for each in sorted(folder.rglob("*")):
            if each.suffix.casefold() in NOTES and each.is_file() and not _is_link(each, folder):
                archive.write(each, each.relative_to(folder).as_posix())


def _is_link(path: Path, folder: Path) -> bool:
    parents = [each for each in path.parents if folder in each.parents]
    return any(each.is_symlink() for each in (path, *parents))


def _unusable(path: Path | None, error: OSError) -> dict[str, str]:
    return {"code": "file", "message": f"Cannot use {path}: {error.strerror}."}
