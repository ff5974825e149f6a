"""Several webs and one process that keeps the keys of sealed vaults, as they are deployed."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import httpx2
import psycopg
import pytest
import redis

from engine.testing.fake_provider import Answer, Request, serving
from memory.tests.vaults import service, writes
from memstudio.cli.api import UNREACHABLE
from memstudio.tests import keeping_stack
from memstudio.tests.keeping_stack import PASSPHRASE, Stack
from memstudio.tests.test_studio import free_port
from memstudio.tests.test_workers import wait_for
from memstudio.vaultd.lease import LOCK, ROLE

MARKER = "zebrafinch"
REFUNDS = f"Refunds are paid within seven days, says {MARKER}."
AWAY = (503, "vaultd_unavailable")
LOCKED = (409, "vault_locked")
FOUND = (200, f"Refund policy {MARKER}")
FOUND_OPEN = (200, "Opening hours")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with keeping_stack.running(tmp_path_factory.mktemp("keeping")) as running:
        yield running


@pytest.fixture
def away(stack: Stack) -> Iterator[Stack]:
    """vaultd was stopped, and is started again afterwards."""
    assert stack.vaultd.end(signal.SIGTERM) == 0
    yield stack
    stack.vaultd = stack.start_vaultd()
    stack.vaultd.greeting()


def make(stack: Stack, name: str, *, web: int = 0, is_sealed: bool = True) -> str:
    """A vault with one card in it; its id."""
    asked = {"name": name, "sealed": is_sealed, "passphrase": PASSPHRASE if is_sealed else ""}
    made = stack.api(web, "", asked)
    assert made.status_code == 200, made.text
    uid = str(made.json()["id"])
    title, body = (FOUND[1], REFUNDS) if is_sealed else (FOUND_OPEN[1], "No refunds on Sundays.")
    card = {"title": title, "body": body, "kind": "card"}
    assert stack.api(web, f"/{uid}/assets", card).status_code == 200
    return uid


def test_a_vault_of_one_web_is_searched_and_locked_through_the_other(stack: Stack) -> None:
    uid = make(stack, "notes")
    assert stack.search(0, "notes") == stack.search(1, uid) == FOUND
    assert stack.search(1, uid, "quasar") == (200, "")
    assert stack.api(1, f"/{uid}/lock", {}).json()["unlocked"] is False
    assert stack.search(0, uid) == stack.search(1, "notes") == LOCKED
    assert stack.unlock(1, uid) == 200
    assert stack.search(0, uid) == FOUND
    other = stack.api(0, f"/{uid}/search", {"query": "refunds"}, who="bob")
    assert (other.status_code, other.json()["error"]["code"]) == (404, "vault_not_found")


def test_an_mcp_client_of_any_web_is_given_passages(stack: Stack) -> None:
    uid = make(stack, "for clients")
    asked = {"vaultId": uid, "query": "refunds", "mode": "bm25"}
    for web in (0, 1):
        found = stack.call_tool(web, "memory_retrieve", **asked)["structuredContent"]
        assert [hit["title"] for hit in found["results"]] == [FOUND[1]]
    grouped = stack.call_tool(0, "memory_search", vault_id="for clients", query="refunds")
    assert grouped["structuredContent"]["memories"][0]["key"] == FOUND[1]
    assert stack.call_tool(0, "memory_search", query="refunds")["structuredContent"]["count"] == 0


def test_without_vaultd_only_what_needs_a_key_is_refused(away: Stack) -> None:
    assert away.api(0, "").status_code == 200
    made = away.api(0, "", {"name": "shut", "sealed": True, "passphrase": PASSPHRASE})
    assert (made.status_code, made.json()["error"]["code"]) == AWAY
    library = make(away, "library", is_sealed=False)
    assert away.search(0, library) == away.search(1, "library") == FOUND_OPEN
    assert away.call_tool(1, "memory_search", query="refunds")["isError"] is False
    shut = away.command("vault", "create", "shut", MEMORY_STUDIO_PASSPHRASE=PASSPHRASE)
    assert (shut.returncode, "(vaultd) could not be asked" in shut.stderr) == (UNREACHABLE, True)
    with away.browser(1) as browser:
        assert browser.get("/").status_code == 200
        page = browser.get("/vaults/")
        assert (page.status_code, "(vaultd) does not answer" in page.text) == (200, True)
        assert browser.get(f"/vaults/{library}/").status_code == 200
        broken = browser.get("/vaults/unavailable/")
        assert (broken.status_code, "(vaultd) does not answer" in broken.text) == (503, True)


def test_a_killed_vaultd_is_a_clear_refusal_and_after_its_return_vaults_are_locked(
    stack: Stack,
) -> None:
    uid = make(stack, "papers")
    assert stack.search(1, uid) == FOUND
    stack.vaultd.end(signal.SIGKILL)
    assert stack.search(0, uid) == stack.search(1, uid) == AWAY
    assert stack.unlock(0, uid) == AWAY[0]
    asked = {"vaultId": uid, "query": "refunds", "mode": "bm25"}
    refused = stack.call_tool(0, "memory_retrieve", **asked)
    assert (refused["isError"], refused["_meta"]["memory-studio/error"]) == (True, AWAY[1])
    assert stack.api(0, f"/{uid}/lock", {}).status_code == 200, "a lock needs no key"
    stack.vaultd = stack.start_vaultd()
    stack.vaultd.greeting()
    assert stack.search(0, uid) == stack.search(1, uid) == LOCKED
    assert stack.unlock(1, uid) == 200
    assert stack.search(0, uid) == FOUND
    for name in ("one", "two"):
        log = (stack.folder / f"{name}.log").read_text(encoding="utf-8")
        assert log.count("does not answer") == log.count("answers again") > 0


def test_a_lock_through_one_web_voids_the_answer_that_is_written_for_another(
    away: Stack,
) -> None:
    stack = away
    asked, locked = threading.Event(), threading.Event()
    with serving() as provider, ThreadPoolExecutor(1) as pool:

        def slowly(request: Request) -> Answer:
            asked.set()
            assert locked.wait(60)
            return writes()(request)

        provider.respond = slowly
        config = stack.folder / "vaultd" / "config.toml"
        config.write_text(service("generation", provider.port), encoding="utf-8")
        stack.vaultd = stack.start_vaultd()
        stack.vaultd.greeting()
        uid = make(stack, "questions")
        question = {"question": "When are refunds paid?", "mode": "bm25"}
        waiting = pool.submit(stack.api, 0, f"/{uid}/ask", question)
        assert asked.wait(60)
        assert stack.api(1, f"/{uid}/lock", {}).status_code == 200
        locked.set()
        answer = waiting.result(60)
        assert (answer.status_code, answer.json()["error"]["code"]) == LOCKED
    config.unlink()
    stack.vaultd.end(signal.SIGTERM)


def test_files_are_dropped_into_a_page_of_either_web(stack: Stack) -> None:
    uid = make(stack, "drawer")
    files = [("files", (f"{n}.md", f"# Note {n}\n\n{MARKER} {n}".encode())) for n in range(3)]
    with stack.browser(1) as browser:
        page = browser.get(f"/vaults/{uid}/ingest/").text
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]
        forged = browser.post(f"/vaults/{uid}/ingest/", files=files)
        assert forged.status_code == 403
        own = {"Origin": stack.webs[1].url}
        sent = browser.post(
            f"/vaults/{uid}/ingest/",
            data={"csrfmiddlewaretoken": token},
            files=[*files, ("files", ("a.pdf", b"%PDF-1.7"))],
            headers=own,
        )
        assert sent.status_code == 200
        assert [name for name in ("0.md", "1.md", "2.md", "a.pdf") if name not in sent.text] == []
    there = stack.api(0, f"/{uid}/assets").json()
    assert {row["source"] for row in there["data"]} == {"", "0.md", "1.md", "2.md"}
    stranger = httpx2.get(f"{stack.webs[0].url}/vaults/{uid}/")
    assert unquote(stranger.headers["location"]) == f"/signin/?next=/vaults/{uid}/"


def test_nobody_but_the_webs_is_let_in(stack: Stack) -> None:
    make(stack, "inner")
    key = {"Authorization": f"Bearer {stack.secrets['alice']}"}
    for headers in (key, key | {"X-Memory-Studio-Proof": "0" * 64}):
        answer = httpx2.get(f"{stack.vaultd.url}/api/vaults", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    for path in ("/", "/mcp", "/signin/", "/api/memory", "/v1/models"):
        assert httpx2.get(f"{stack.vaultd.url}{path}", headers=key).status_code == 403
    assert httpx2.get(f"{stack.vaultd.url}/healthz").text == "ok\n"
    assert httpx2.get(f"{stack.vaultd.url}/readyz").text == "ok\n"
    assert httpx2.get(f"{stack.vaultd.url}/metrics").status_code == 401


def test_a_second_vaultd_refuses_to_start_and_leaves_the_first_alone(stack: Stack) -> None:
    uid = make(stack, "single")
    second = stack.start_vaultd("second", free_port())
    assert second.process.wait(60) == 1
    second.end(signal.SIGKILL)
    said = second.log.read_text(encoding="utf-8")
    assert said.startswith("memory studio: Another process keeps the keys of sealed vaults")
    assert said.count("\n") == 1
    assert stack.search(0, uid) == FOUND


def test_a_studio_on_sqlite_needs_no_vaultd(stack: Stack) -> None:
    done = stack.command("vaultd", DATABASE_URL="", MEMORY_STUDIO_VAULTD="")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "The studio on SQLite keeps the keys of vaults itself" in done.stderr


def test_a_web_that_keeps_keys_itself_does_not_start_beside_vaultd(stack: Stack) -> None:
    keeping = {"MEMORY_STUDIO_VAULTD": "", "MEMORY_STUDIO_KEEPS_VAULTS": "1"}
    both = {"MEMORY_STUDIO_KEEPS_VAULTS": "1"}
    for variables, sentence in (
        (keeping, "Another process keeps the keys of sealed vaults"),
        (both, "This process keeps the keys of vaults itself"),
    ):
        done = stack.command("studio", "--port", str(free_port()), **variables)
        assert (done.returncode, sentence in done.stderr) == (1, True)
        assert done.stderr.count("\n") == 1


def test_a_vaultd_that_lost_its_place_forgets_every_key_and_ends(stack: Stack) -> None:
    uid = make(stack, "taken")
    with psycopg.connect(stack.database, autocommit=True) as other:
        other.execute("SET application_name = 'the next one'")
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s",
            (f"{ROLE}@%",),
        )
        # Whoever waits for a lock has it before the one that lost it comes back.
        other.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
        assert stack.vaultd.process.wait(60) == 0
        assert stack.search(0, uid) == AWAY
        assert "another process keeps" in stack.vaultd.log.read_text(encoding="utf-8")
    stack.vaultd.end(signal.SIGKILL)
    stack.vaultd = stack.start_vaultd()
    stack.vaultd.greeting()
    assert stack.search(0, uid) == LOCKED


def test_a_restarted_database_takes_no_key_away(stack: Stack) -> None:
    uid = make(stack, "lasting")
    with psycopg.connect(stack.database, autocommit=True) as connection:
        # The server of the tests does not write what it commits at once.
        connection.execute("CHECKPOINT")
    stack.postgres.kill()
    stack.postgres.start()
    wait_for(lambda: stack.search(0, uid) == FOUND, "the answer after the restart")
    again = stack.start_vaultd("second", free_port())
    assert again.process.wait(60) == 1
    again.end(signal.SIGKILL)


def test_commands_on_a_host_of_the_webs_reach_vaultd(stack: Stack) -> None:
    uid = make(stack, "by command")
    assert stack.command("vault", "lock", uid).returncode == 0
    assert stack.search(1, uid) == LOCKED
    opened = stack.command("vault", "unlock", uid, MEMORY_STUDIO_PASSPHRASE=PASSPHRASE)
    assert opened.returncode == 0, opened.stderr
    found = stack.command("rag", "search", uid, "refunds", "--mode", "bm25")
    assert (found.returncode, FOUND[1] in found.stdout) == (0, True), found.stderr
    assert stack.search(0, uid) == FOUND


def test_nothing_of_a_sealed_vault_is_in_database_redis_logs_or_files(stack: Stack) -> None:
    uid = make(stack, "secrets")
    asked: dict[str, Any] = {"vaultId": uid, "query": f"{MARKER} {PASSPHRASE}", "mode": "bm25"}
    assert stack.call_tool(1, "memory_retrieve", **asked)["structuredContent"]["results"]
    assert stack.search(0, uid, MARKER) == FOUND
    held = "\n".join([*rows(stack.database), *values(stack.redis)])
    assert uid in held, "the places where it could be are looked at"
    files = [path for path in stack.folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" for path in files)
    told = b"\n".join(path.read_bytes() for path in files)
    for word in (MARKER, PASSPHRASE):
        assert word not in held
        assert word.encode() not in told


def rows(url: str) -> Iterator[str]:
    """Every row of every table, as text."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        ).fetchall()
        for (table,) in tables:
            name = psycopg.sql.Identifier(table)
            query = psycopg.sql.SQL("SELECT t::text FROM {} t").format(name)
            yield from (str(row[0]) for row in connection.execute(query))


def values(url: str) -> Iterator[str]:
    """Every key of Redis with its value."""
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter():
            yield repr(key)
            yield repr(client.dump(key))
