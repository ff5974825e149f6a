"""The commands ``memory``, ``keys``, ``settings``, ``providers``, ``jobs``: REST in a shell."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from memory.models import ApiKey, Job, Memory
from memory.services import signin
from memstudio import address, home
from memstudio.cli.api import CONFLICT, DENIED, MISSING, REFUSED, UNREACHABLE, USAGE
from memstudio.tests.mcp_client import ROOT, environment, manage, serving
from memstudio.tests.test_studio import Studio, free_port


@pytest.fixture(autouse=True)
def first_start(db: None) -> Iterator[None]:
    signin.first_start()
    # A request would close the connection that holds the transaction of the test.
    for signal_ in (request_started, request_finished):
        signal_.disconnect(close_old_connections)
    yield
    for signal_ in (request_started, request_finished):
        signal_.connect(close_old_connections)


def run(*arguments: str) -> str:
    """What a command prints for people."""
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def answer(*arguments: str) -> Any:
    """What a command prints with ``--json``."""
    return json.loads(run(*arguments, "--json"))


def failed(*arguments: str) -> tuple[int, str]:
    """The exit status and the sentence of a command that is refused."""
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    return refused.value.returncode, str(refused.value)


def test_a_memory_is_added_found_changed_and_removed() -> None:
    added = answer("memory", "add", "Likes green tea", "--key", "drink", "--metadata", '{"a": 1}')
    assert (added["key"], added["metadata"], added["created"]) == ("drink", {"a": 1}, True)
    found = answer("memory", "search", "green tea", "--strategy", "exact")
    assert [each["id"] for each in found["memories"]] == [added["id"]]
    changed = answer("memory", "update", added["id"], "--content", "Likes coffee", "--pinned")
    assert (changed["content"], changed["pinned"]) == ("Likes coffee", True)
    assert answer("memory", "history", added["id"])["data"][0]["content"] == "Likes green tea"
    assert answer("memory", "delete", added["id"]) == {"success": True}
    assert failed("memory", "get", added["id"]) == (MISSING, "No such memory.")
    assert answer("memory", "restore", added["id"])["content"] == "Likes coffee"


def test_without_a_key_the_same_text_is_the_same_memory() -> None:
    first, second = answer("memory", "add", "a note"), answer("memory", "add", "a note")
    assert first["id"] == second["id"]
    assert first["key"].startswith("note:")


def test_a_search_may_name_whose_memories_first() -> None:
    answer("keys", "create", "carol")
    answer("memory", "add", "carol rides a tandem", "--owner", "carol")
    answer("memory", "add", "nobody rides a tandem")
    found = answer("memory", "search", "carol", "rides tandem", "--match-mode", "all")
    assert [each["content"] for each in found["memories"]] == ["carol rides a tandem"]
    assert found["resolution"]["strategyUsed"] == "exact"
    status, said = failed("memory", "search", "carol", "rides", "tandem")
    assert (status, said) == (USAGE, "Put the query in quotation marks.")


def test_lists_are_tables_for_people() -> None:
    answer("memory", "add", "line one\nline two", "--key", "k")
    lines = run("memory", "list").splitlines()
    assert lines[0].split() == ["ID", "TYPE", "KEY", "CONTENT"]
    assert lines[1].endswith("k    line one line two")
    assert lines[2] == "1 of 1"


def test_an_earlier_type_is_factual_and_warns(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer("memory", "add", "x", "--type", "feedback")["type"] == "factual"
    assert "deprecated" in capsys.readouterr().err


def test_an_unknown_type_is_refused_with_its_field() -> None:
    status, said = failed("memory", "add", "x", "--type", "odd")
    assert status == USAGE
    assert "type: " in said


def test_keys_are_made_rotated_and_revoked() -> None:
    made = answer("keys", "create", "dora", "--scope", "read")
    assert made["secret"].startswith("ms_")
    assert failed("keys", "create", "dora")[0] == CONFLICT
    assert answer("keys", "rotate", "dora")["secret"] != made["secret"]
    assert answer("keys", "revoke", "dora") == {"success": True}
    listed = {key["name"]: key for key in answer("keys", "list")["data"]}
    assert listed["dora"]["revokedAt"] is not None
    assert "dora" in run("keys", "list")


def test_a_command_acts_as_the_key_that_is_named() -> None:
    secret = answer("keys", "create", "reader", "--scope", "read")["secret"]
    answer("memory", "add", "not of the reader")
    for acting in ("reader", secret):
        assert answer("memory", "list", "--as", acting)["total"] == 0
        status, said = failed("memory", "add", "x", "--as", acting)
        assert (status, said) == (DENIED, "This needs the scope “write”.")
    assert failed("memory", "list", "--as", "ms_wrong")[0] == DENIED


def test_settings_are_shown_and_changed() -> None:
    assert answer("settings", "set", "maxTokens=3000", "strategy=semantic") == {
        "maxTokens": 3000,
        "strategy": "semantic",
    }
    assert answer("settings", "get", "maxTokens") == 3000
    assert "strategy" in run("settings", "get")
    assert failed("settings", "set", "maxTokens=-1")[0] == USAGE
    assert failed("settings", "set", "maxTokens")[1] == "maxTokens is not NAME=VALUE."
    assert failed("settings", "get", "odd")[1] == "There is no setting odd."


def test_providers_are_set_up_put_in_order_and_removed() -> None:
    added = answer("providers", "add", "cohere", "--key-env", "CO_KEY")
    assert (added["kind"], added["apiKeyEnv"], added["hasKey"]) == ("cohere", "CO_KEY", False)
    lab = ("--base-url", "http://127.0.0.1:9/v1", "--models", "qwen-*", "llama")
    assert answer("providers", "add", "lab", *lab)["models"] == ["qwen-*", "llama"]
    assert answer("providers", "set", "lab", "--disable")["enabled"] is False
    ordered = answer("providers", "order", "lab")["data"]
    assert [row["name"] for row in ordered] == ["lab", "cohere"]
    assert run("providers", "list").splitlines()[1].split()[:2] == ["lab", "OpenAI-compatible"]
    assert "Voyage AI" in run("providers", "catalogue")
    (check,) = answer("providers", "test", "lab")["checks"]
    assert (check["ok"], check["code"]) == (False, "connect_failed")
    assert answer("providers", "remove", "lab") == {"success": True}
    assert failed("providers", "test", "lab")[0] == MISSING


def test_an_error_is_json_where_json_is_asked_for() -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("memory", "get", "nothing", "--json", stdout=out)
    assert ended.value.code == MISSING
    assert json.loads(out.getvalue())["error"]["code"] == "not_found"


def test_what_was_exported_is_imported_again(tmp_path: Path) -> None:
    answer("memory", "add", "京都が好き", "--key", "place")
    file = tmp_path / "all.json"
    assert answer("memory", "export", str(file)) == {"written": str(file)}
    Memory.objects.all().delete()
    report = answer("memory", "import", str(file), "--owner", "erin")
    assert (report["imported"], report["skipped"]) == (1, 0)
    assert Memory.objects.get().api_key == ApiKey.objects.get(name="erin")
    assert "0 imported, 0 updated, 1 the same" in run(
        "memory", "import", str(file), "--owner", "erin"
    )
    assert failed("memory", "import", str(tmp_path / "none"))[0] == USAGE


def test_an_export_to_standard_output_is_nothing_but_the_export(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer("memory", "add", "a note")
    assert run("memory", "export") == ""
    assert len(json.loads(capsys.readouterr().out)["memories"]) == 1


def test_jobs_that_wait_are_run_here_when_no_studio_runs() -> None:
    job = Job.objects.create(kind="odd", created_at="2026-01-01T00:00:00Z")
    assert answer("jobs", "show", str(job.pk))["state"] == "queued"
    assert answer("jobs", "cancel", str(job.pk))["state"] == "cancelled"
    assert failed("jobs", "cancel", str(job.pk))[0] == CONFLICT
    assert failed("jobs", "wait", str(job.pk)) == (REFUSED, "The job is cancelled.")
    assert str(job.pk) in run("jobs", "list")
    assert answer("jobs", "run") == {"ran": 0}


def test_a_studio_that_does_not_answer_has_its_own_status() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    status, said = failed("memory", "list", "--url", url)
    assert status == UNREACHABLE
    assert said.startswith(f"The studio at {url} does not answer")
    assert failed("memory", "export", "--url", url)[0] == UNREACHABLE


def test_an_address_counts_only_while_a_studio_holds_the_home(tmp_path: Path) -> None:
    with home.lock(tmp_path), address.published(tmp_path, "http://127.0.0.1:9"):
        assert address.find(tmp_path) == "http://127.0.0.1:9"
    assert address.find(tmp_path) is None
    (tmp_path / address.NAME).write_text("http://127.0.0.1:9\n", encoding="utf-8")
    assert address.find(tmp_path) is None


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Studio]:
    with serving(tmp_path) as studio:
        yield studio


def test_commands_talk_to_the_studio_that_runs(served: Studio) -> None:
    secret = json.loads(manage(served.home, "keys", "create", "finn", "--json"))["secret"]
    asked = ("memory", "list", "--json", "--as", secret, "--url", served.url)
    assert json.loads(manage(served.home, *asked))["total"] == 0
    done = subprocess.run(
        [sys.executable, "manage.py", "jobs", "run"],
        cwd=ROOT,
        env=environment(served.home),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == REFUSED
    assert done.stderr == "CommandError: A studio runs here: its workers do it.\n"
