"""Which database the settings choose."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from memstudio import database
from memstudio.errors import StartError


def test_without_a_url_the_rows_live_in_the_home() -> None:
    chosen = database.default(Path("/somewhere"), "")
    assert chosen["ENGINE"].endswith("sqlite3")
    assert chosen["NAME"] == Path("/somewhere/studio.sqlite3")
    assert chosen["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


@pytest.mark.embedded
@pytest.mark.django_db
def test_sqlite_runs_with_a_write_ahead_log() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)
        cursor.execute("PRAGMA synchronous")
        assert cursor.fetchone() == (1,)


def test_a_url_is_taken_apart() -> None:
    chosen = database.default(Path(), "postgres://me:p%40ss@db.local:5433/studio?sslmode=require")
    assert chosen["ENGINE"].endswith("postgresql")
    assert (chosen["USER"], chosen["PASSWORD"], chosen["NAME"]) == ("me", "p@ss", "studio")
    assert (chosen["HOST"], chosen["PORT"]) == ("db.local", "5433")
    assert chosen["OPTIONS"] == {**database.PATIENCE, "sslmode": "require"}


def test_options_of_the_url_win() -> None:
    chosen = database.default(Path(), "postgres://me@db/studio?connect_timeout=1")
    assert chosen["OPTIONS"]["connect_timeout"] == "1"


@pytest.mark.parametrize(
    "url", ["mysql://me:hidden@db/studio", "postgres://me:hidden@db", "postgres://me:hidden@db:x/s"]
)
def test_an_odd_url_is_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(StartError, match=r"^DATABASE_URL") as refused:
        database.default(Path(), url)
    assert "hidden" not in str(refused.value)
