"""The examples of ``docs/compatibility.md``, run as they stand against a served studio."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstudio.tests.mcp_client import make_keys, serving

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a studio, and the secret of a key."""
    with serving(tmp_path_factory.mktemp("studio")) as served:
        yield served.url, make_keys(served.home, alice=["read", "write"])["alice"]


@pytest.mark.parametrize("example", EXAMPLES, ids=["mem0", "langgraph"])
def test_an_example_of_the_page_runs(
    studio: tuple[str, str],
    example: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    url, secret = studio
    ours = example.replace("http://127.0.0.1:8765", url).replace("ms_…", secret)
    names: dict[str, object] = {}
    exec(compile(ours, str(PAGE), "exec"), names)  # noqa: S102
    client = names["client"]
    http = getattr(client, "client", None) or client.http.client  # type: ignore[attr-defined]
    http.close()
