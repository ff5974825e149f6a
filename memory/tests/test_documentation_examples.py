"""The examples of the documents work as they are printed, on a studio that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.studio_process import serving
from memory.tests.doc_examples import ROOT, Example, Shell, differences, examples
from memory.tests.own_stack import environment

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = {page.name: examples(page) for page in PAGES if examples(page)}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A studio in a process of its own, and a shell beside it with a key that may do everything."""
    environ = environment(tmp_path_factory.mktemp("home"))
    with serving(environ) as (url, _link):
        made = Shell(tmp_path_factory.mktemp("folder"), url, "", environ)
        made.prepare()
        answer = made.run("python manage.py keys create maker --scope manage --json")
        yield replace(made, key=json.loads(answer)["secret"])


def _with_key_of(shell: Shell, page: str) -> Shell:
    """The same with a key for one page, which owns nothing yet."""
    scopes = ["read", "write", "chat", "manage"]
    made = shell.send("POST", "/api/keys", json.dumps({"name": page, "scopes": scopes}))
    return replace(shell, key=made["secret"])


@pytest.mark.parametrize("page", list(EXAMPLES))
def test_the_examples_of_a_page_do_what_it_says(shell: Shell, page: str) -> None:
    shell, earlier, answer = _with_key_of(shell, page), "", ""
    for example in EXAMPLES[page]:
        if example.is_left_out:
            continue
        if example.note == "answer":
            _compare(example, answer)
        elif example.request:
            answer = json.dumps(shell.send(*example.request, example.text))
        elif example.lang == "sh":
            # Functions and variables of a page hold until its end.
            answer = shell.run(f"{{ :\n{earlier}}} >/dev/null\n{example.text}")
            earlier += _definitions(example.text)
        else:
            _read(example)


def _compare(example: Example, answer: str) -> None:
    lines = [line for line in answer.splitlines() if line.strip()]
    assert lines, f"{example}: nothing was answered"
    assert differences(json.loads(example.text), json.loads(lines[-1])) == [], str(example)


def _definitions(script: str) -> str:
    """The lines that define something for what comes later."""
    pieces = script.replace("\\\n", "\\\0").splitlines()
    kept = [line for line in pieces if line.startswith(("api()", "ID=", "alias "))]
    return "\n".join(kept).replace("\0", "\n") + "\n"


def _read(example: Example) -> None:
    assert not example.note, f"{example}: {example.note!r} means nothing"
    if example.lang == "json":
        json.loads(example.text)
    elif example.lang == "python":
        compile(example.text, str(example), "exec")


def test_what_is_shown_must_be_there() -> None:
    real = {"id": "a-1", "hits": [{"score": 1.0}, {"score": 0.5}], "ok": True}
    assert differences({"id": "a-…", "hits": [{"score": "…"}, "…"]}, real) == []
    assert differences({"hits": "…", "ok": True}, real) == []
    assert differences({"ok": 1}, real) == ["answer.ok: True is not 1"]
    assert differences({"hits": [{"score": 1.0}]}, real) == ["answer.hits: 2 instead of 1"]
    assert differences({"id": "b…", "gone": 1}, real) == [
        "answer.gone: not there",
        "answer.id: 'a-1' is not 'b…'",
    ]


def test_an_example_that_is_left_out_says_why(tmp_path: Path) -> None:
    page = ROOT / "docs" / "api.md"
    assert any(example.note == "answer" for example in examples(page))
    silent = Example("page.md", 1, "sh", "exit 1\n", "not run:")
    assert not silent.is_left_out
    assert Example("page.md", 1, "sh", "exit 1\n", "not run: it needs a container").is_left_out
