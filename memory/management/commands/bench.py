"""``manage.py bench --passages N [--json]``: speed beside raw FTS5, numpy, sqlite-vec and HNSW."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    """Measures in a process and a home of their own; the person's memories are never touched."""

    help = "Measure the speed of searches and of the import on made-up memories."
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """How many passages, how many questions, and whose."""
        parser.add_argument("--passages", type=int, default=10_000, metavar="N")
        parser.add_argument("--questions", type=int, default=300, metavar="N")
        parser.add_argument(
            "--share", type=float, default=0.9, help="of the passages, the biggest owner's part"
        )
        parser.add_argument("--brief", action="store_true", help="the ratios, and little else")
        parser.add_argument(
            "--embedding", action="store_true", help="also time the fill job beside the bare model"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Measure and print."""
        try:
            from benchmarks.speed import main, report
        except ImportError as error:
            raise CommandError(f"the benchmarks cannot be run here: {error}") from None
        passages, share = options["passages"], options["share"]
        if passages < 100 or options["questions"] < 1 or not 0 < share <= 1:
            raise CommandError("100 passages, one question and a share up to 1 are the least")
        make = main.brief_plan if options["brief"] else main.plan_of
        plan = make(passages, questions=options["questions"], share=share)
        try:
            result = main.measure(plan)
            if options["embedding"]:
                result["embedding"] = main.embedding()
        except RuntimeError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps(result))
            return
        self.stdout.write("\n".join([report.machine(result), "", *report.table([result])]))
        if "embedding" in result:
            self.stdout.write(f"\nEmbedding: {json.dumps(result['embedding'])}")
