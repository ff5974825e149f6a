"""The only importer of native inference libraries, and how they are set up.

ONNX Runtime sends telemetry unless the variable is set before its first import, so everything
that wants it comes here. A library known to crash the process when it is loaded before
ONNX Runtime (usearch) must be imported here too, after ``runtime()``.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Protocol

import numpy as np
import numpy.typing as npt

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# The tokenizers library would start one thread per core and warn after a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

QUIET = 3
"""ONNX Runtime log severity: errors only."""

_lock = Lock()
_runtime: ModuleType | None = None
_graphs: ModuleType | None = None


class Port(Protocol):
    """An input or output of a model."""

    @property
    def name(self) -> str: ...


class Session(Protocol):
    """The part of an inference session that is used here. ``run`` may be called by many threads."""

    def get_inputs(self) -> list[Port]: ...
    def get_outputs(self) -> list[Port]: ...

    def run(
        self, outputs: list[str] | None, feed: dict[str, npt.NDArray[np.int64]], /
    ) -> list[npt.NDArray[np.float32]]: ...


def runtime() -> ModuleType:
    """The ``onnxruntime`` module, imported on the first call with telemetry off and logs quiet.

    Raises ``ImportError`` when the package is absent.
    """
    global _runtime
    with _lock:
        if _runtime is None:
            import onnxruntime

            onnxruntime.disable_telemetry_events()
            onnxruntime.set_default_logger_severity(QUIET)
            _runtime = onnxruntime
        return _runtime


def graphs() -> ModuleType:
    """The module ``usearch.index``, imported after ONNX Runtime where that is installed.

    The other way round the process crashes. Raises ``ImportError`` when the package is absent.
    """
    global _graphs
    with suppress(ImportError):
        runtime()
    with _lock:
        if _graphs is None:
            import usearch.index

            _graphs = usearch.index
        return _graphs


def session(path: Path, *, threads: int = 1) -> Session:
    """Open an ONNX model on the CPU.

    With one thread a run works on the calling thread alone, so runs of several threads go on side
    by side. Spinning is off: waiting workers would take the cores from the web threads.
    """
    onnxruntime = runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    opened: Session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    return opened
