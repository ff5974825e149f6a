"""``manage.py jobs …``: long work, as REST has it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any, Final

from memstudio.cli import files
from memstudio.cli.api import REFUSED, Api, Refused
from memstudio.cli.command import ApiCommand, fields, table

COLUMNS: Final = ("id", "kind", "state", "percent", "createdAt", "message")
ACTIVE: Final = ("queued", "running")
LOOK_EVERY_S: Final = 0.3


class Command(ApiCommand):
    """List jobs, follow one, stop one, start one again."""

    help = "Work with jobs."

    def add_subcommands(self) -> None:
        """One for each thing that can be done."""
        listed = self.subcommand("list", "newest first", _list, _show_list)
        listed.add_argument("--limit", type=int, default=20)
        for name, text, action in (
            ("show", "one job", _show),
            ("cancel", "ask a job to stop", _cancel),
            ("retry", "start a failed or cancelled job again", _retry),
            ("wait", "wait until a job has ended; status 1 when it failed", _wait),
        ):
            self.subcommand(name, text, action, fields).add_argument("id")
        self.subcommand("run", "run what waits, where no studio runs", files.run_jobs, fields)


def _list(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("GET", "jobs", limit=options["limit"])


def _show(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("GET", f"jobs/{options['id']}")


def _cancel(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("POST", f"jobs/{options['id']}/cancel")


def _retry(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("POST", f"jobs/{options['id']}/retry")


def _wait(api: Api, options: Mapping[str, Any]) -> Any:
    job = _show(api, options)
    if api.is_local and job["state"] in ACTIVE:
        files.run_jobs(api, options)
        job = _show(api, options)
    pause = threading.Event()
    while job["state"] in ACTIVE:
        _progress(job)
        pause.wait(LOOK_EVERY_S)
        job = _show(api, options)
    if job["state"] != "succeeded":
        message = f"The job is {job['state']}. {job['message']}".strip()
        raise Refused(REFUSED, {"code": job["errorCode"] or job["state"], "message": message})
    return job


def _progress(job: Mapping[str, Any]) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{job['percent']:3d} %  {job['done']:,} of {job['total']:,}  ")


def _show_list(answer: Any) -> list[str]:
    return table(answer["data"], COLUMNS)
