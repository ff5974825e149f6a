"""A process that starts on a filled home: how soon it answers, and how much memory it takes.

``python -m benchmarks.speed.cold``; questions with their vectors come on standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.speed.data import Data
from benchmarks.speed.machine import resident_mb

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = 50


def start(data: Data) -> dict[str, float]:
    """Start one on the home of this process."""
    chosen = {text: data.known[text].tolist() for text in data.questions[:QUESTIONS]}
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.speed.cold"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ,
    ) as process:
        output, _errors = process.communicate(json.dumps(chosen))
    if process.returncode != 0:
        raise RuntimeError("the process that starts on a filled home failed")
    found: dict[str, float] = json.loads(output)
    return found


def main() -> None:
    """Answer, and print what it took."""
    began = time.perf_counter()
    given = json.load(sys.stdin)
    import django

    django.setup()
    print(json.dumps(_measured(given, began)))


def _measured(given: dict[str, Any], began: float) -> dict[str, float]:
    import numpy as np

    from benchmarks.speed.product import Product, hybrid
    from benchmarks.speed.text import BIGGEST

    known = {text: np.array(vector, np.float32) for text, vector in given.items()}
    questions = list(known)
    product = Product(known)
    # The dictionary of the tokenizer is no part of an index.
    product.terms("first 第一 最初の")
    before_mb, before = resident_mb(), time.perf_counter()
    hybrid(questions[0], owner=BIGGEST)
    answered = time.perf_counter()
    settled_s = product.settle()
    for text in questions[1:]:
        hybrid(text, owner=BIGGEST)
    return {
        "setup_s": before - began,
        "first_answer_s": answered - before,
        "index_load_s": answered - before + settled_s,
        "rss_mb": resident_mb(),
        "rss_before_mb": before_mb,
    }


if __name__ == "__main__":
    main()
