"""``manage.py evaluate DIR --mode keyword|vector|hybrid|all --json``: retrieval quality."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.evaluation.dataset import read
from memory.evaluation.run import MODES, ask, load
from memory.evaluation.scratch import scratch_database


class Command(BaseCommand):
    """Evaluates a data set in a scratch database, without retention."""

    help = "Measure retrieval on a data set in the common format (corpus, queries, qrels)."
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The folder, the mode, and where vectors are kept between runs."""
        parser.add_argument("folder", type=Path)
        parser.add_argument("--mode", choices=[*MODES, "all"], default="hybrid")
        parser.add_argument("--json", action="store_true", help="print JSON as the last line")
        parser.add_argument("--cache", type=Path, default=None, help="folder for vectors")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load, ask, print: one JSON line a mode; with ``all`` the last one holds every mode."""
        try:
            dataset = read(options["folder"])
        except (OSError, ValueError) as error:
            raise CommandError(f"not a data set: {error}") from None
        wanted = list(MODES) if options["mode"] == "all" else [options["mode"]]
        with scratch_database():
            try:
                load(
                    dataset,
                    with_vectors=wanted != ["keyword"],
                    cache=options["cache"],
                    say=self.stderr.write,
                )
            except ValueError as error:
                raise CommandError(str(error)) from None
            results = [ask(dataset, mode, say=self.stderr.write) for mode in wanted]
        self._print(results, as_json=options["json"])

    def _print(self, results: list[dict[str, Any]], *, as_json: bool) -> None:
        if as_json:
            if len(results) > 1:
                results[-1] = {**results[-1], "modes": {row["mode"]: row for row in results}}
            for result in results:
                self.stdout.write(json.dumps(result, ensure_ascii=False))
            return
        for result in results:
            figures = "  ".join(f"{k} {v}" for k, v in result.items() if k not in ("set", "mode"))
            self.stdout.write(f"{result['set']} {result['mode']}: {figures}")
