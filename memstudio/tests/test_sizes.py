"""Files stay under 400 lines, functions under 40, templates under 150."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SIZES = (("templates/**/*.html", 150), ("static/js/*.js", 400), ("static/css/*.css", 400))
PINNED = re.compile(r"^([\w.-]+)(?:\[\w+\])?==", re.MULTILINE)
BLOCK = 4096
PACKAGES = ("engine", "memory", "memstudio", "benchmarks")


def python_files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (p for p in (ROOT / package).rglob("*.py") if "migrations" not in p.parts)


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_files_stay_short() -> None:
    long = [(path.name, lines(path)) for path in python_files() if lines(path) > 400]
    for pattern, most in SIZES:
        long += [(path.name, lines(path)) for path in ROOT.glob(pattern) if lines(path) > most]
    assert long == []


def test_functions_stay_short() -> None:
    long = [
        f"{path.name}:{node.lineno} {node.name}"
        for path in python_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > 40
    ]
    assert long == []


def test_what_the_product_installs_stays_small() -> None:
    """A fresh environment may take 750 MB; its bytecode is 90 of them and pip 15."""
    blocks = 0
    for name in PINNED.findall((ROOT / "requirements.txt").read_text(encoding="utf-8")):
        try:
            files = metadata.distribution(name).files or ()
        except metadata.PackageNotFoundError:
            continue  # one that this system does not need
        places = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
        blocks += sum(-(-place.stat().st_size // BLOCK) for place in places if place.is_file())
    assert 200 < blocks * BLOCK / 2**20 < 750 - 90 - 15
