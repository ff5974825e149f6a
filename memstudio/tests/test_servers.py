"""Studios on a Postgres and a Redis, as many as one likes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from engine.testing import postgres_server, redis_server
from engine.testing.postgres_server import PostgresServer
from memstudio.tests.test_studio import ROOT, Studio, free_port
from memstudio.tests.test_workers import wait_for

KEY = "MEMORY_STUDIO_ENCRYPTION_KEY"
OTHER_KEY = "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyISE="


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server.running() as server:
        yield server


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    with redis_server.running() as server:
        yield server.url


@pytest.fixture
def url(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """A database of its own."""
    return postgres.create(f"t{abs(hash(request.node.name))}")


def prepare(home: Path, *options: str) -> tuple[int, str]:
    """``manage.py prepare``: exit code, and what it said."""
    done = subprocess.run(
        [sys.executable, "manage.py", "prepare", *options],
        cwd=ROOT,
        env={**os.environ, "MEMORY_STUDIO_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def count(url: str, query: str) -> int:
    """One number of a database."""
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def status(studio: Studio, path: str) -> int:
    """What a page answers with."""
    try:
        with urllib.request.urlopen(studio.url + path) as answer:
            found: int = answer.status
            return found
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_studios_that_start_at_once_share_a_database_and_even_a_home(
    url: str, redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("REDIS_URL", redis)
    studios = [Studio(tmp_path, free_port()) for _ in range(3)]
    try:
        greetings = [studio.wait_until_up() for studio in studios]
        for studio, greeting in zip(studios, greetings, strict=True):
            assert "make worker" in greeting
            assert greeting.count("trust") == 0
            link = greeting.split("works once: ")[1].split()[0]
            assert status(studio, link.removeprefix(studio.url)) == 200, "each link signs in"
            assert (status(studio, "/healthz"), status(studio, "/readyz")) == (200, 200)
        assert count(url, "SELECT count(*) FROM memory_apikey WHERE is_default") == 1
        assert count(url, "SELECT count(*) FROM auth_user") == 1
    finally:
        ends = [studio.stop(signal.SIGTERM) for studio in studios]
    assert ends == [(0, "")] * 3


def test_a_host_with_another_key_is_refused_until_it_is_told_to_go_on(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    assert prepare(tmp_path) == (0, "The database is up to date.\n")
    monkeypatch.setenv(KEY, OTHER_KEY)
    code, said = prepare(tmp_path)
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("memory studio: This database belongs to an installation with another ")
    assert KEY in said
    assert OTHER_KEY not in said
    assert prepare(tmp_path, "--accept-new-keys")[0] == 0
    assert prepare(tmp_path)[0] == 0


def test_a_database_that_does_not_exist_is_one_sentence(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", postgres.url("nowhere"))
    code, said = prepare(tmp_path)
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("memory studio: The database nowhere on 127.0.0.1:")
    assert "does not exist" in said


def test_a_studio_is_not_ready_while_its_database_is_away_and_ready_again_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.running() as server:
        monkeypatch.setenv("DATABASE_URL", server.create("studio"))
        studio = Studio(tmp_path, free_port())
        try:
            studio.wait_until_up()
            assert status(studio, "/readyz") == 200
            server.kill()
            wait_for(lambda: status(studio, "/readyz") == 503, "the end of the database")
            assert status(studio, "/healthz") == 200
            server.start()
            wait_for(lambda: status(studio, "/readyz") == 200, "its return")
            assert status(studio, "/signin/") == 200
        finally:
            studio.stop(signal.SIGKILL)
