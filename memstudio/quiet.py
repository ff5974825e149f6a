"""What every entry point does before anything heavy is imported."""

from __future__ import annotations

import os
import sys


def apply() -> None:
    """Set what native libraries read once, when they are loaded.

    ONNX Runtime sends no telemetry; OpenMP threads sleep instead of spinning, because the web
    server and the worker share the cores. numpy multiplies on the calling thread: its own threads
    wait for one another, and on busy cores a search of 0.2 ms took 16.

    Python's threads change places after one millisecond instead of five: a page gives the
    interpreter away at each of its 40 statements, and would wait five for each while another
    thread loads a model.
    """
    sys.setswitchinterval(0.001)
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
