"""The passage table and the texts, kept by an index that stands alone (a sealed vault, a test)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from engine import scope_sql
from engine.database import POSTGRESQL, SQLITE, dialect_of
from engine.protocols import Connect
from engine.text.normalize import without_surrogates
from engine.types import Passage, Scope

CREATE_TEXTS = """
    CREATE TABLE IF NOT EXISTS {texts} (
        id {integer} PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, meta TEXT NOT NULL,
        normalized TEXT NOT NULL)"""
CREATE_PASSAGES = {SQLITE: scope_sql.CREATE_TABLE, POSTGRESQL: scope_sql.SERVER_TABLE}
UPSERT_PASSAGE = """
    INSERT INTO {passages} (id, owner_id, vault_id, session, type, is_shared, is_pinned,
        is_archived, retained_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET owner_id = excluded.owner_id, vault_id = excluded.vault_id,
        session = excluded.session, type = excluded.type, is_shared = excluded.is_shared,
        is_pinned = excluded.is_pinned, is_archived = excluded.is_archived,
        retained_ms = excluded.retained_ms, expires_ms = excluded.expires_ms"""
UPSERT_TEXTS = """
    INSERT INTO {texts} (id, title, body, meta, normalized) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET title = excluded.title, body = excluded.body,
        meta = excluded.meta, normalized = excluded.normalized"""
DELETE = ("DELETE FROM {passages} WHERE id = ?", "DELETE FROM {texts} WHERE id = ?")
CLEAR = ("DELETE FROM {passages} WHERE id IN (SELECT id FROM {texts})", "DELETE FROM {texts}")
READ = "SELECT id, title, body, meta FROM {texts} WHERE id {among}"
HOLDING = """
    SELECT p.id FROM {texts} t JOIN {passages} p ON p.id = t.id
    WHERE {holds} AND {condition} ORDER BY p.id"""

HOLDS = {
    SQLITE: "instr(t.normalized, ?) > 0",
    POSTGRESQL: 'position(CAST(? AS TEXT) COLLATE "C" IN t.normalized) > 0',
}

NUL = "\uf8ff"
"""Stands for the character NUL, at the end of the private use area."""

_SEPARATOR = "\n"


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """The three texts of one passage."""

    title: str
    body: str
    meta: str


class OwnedPassages:
    """Creates, fills and reads ``scope_sql.TABLE`` and a table of texts beside it."""

    def __init__(self, connect: Connect, table: str, comparable: Callable[[str], str]) -> None:
        self._connect = connect
        self._table = table
        self._comparable = comparable

    def ensure(self) -> None:
        """Create both tables when absent."""
        database = self._connect()
        database.execute(CREATE_PASSAGES[dialect_of(database)])
        database.execute(self._sql(CREATE_TEXTS))

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Store scope columns and texts of passages."""
        database = self._connect()
        database.executemany(self._sql(UPSERT_PASSAGE), list(map(_scope_row, passages)))
        database.executemany(self._sql(UPSERT_TEXTS), list(map(self._text_row, passages)))

    def delete(self, rows: Sequence[tuple[int]]) -> None:
        """Forget passages."""
        for statement in DELETE:
            self._connect().executemany(self._sql(statement), rows)

    def clear(self) -> None:
        """Forget every passage that was stored here."""
        self.ensure()
        for statement in CLEAR:
            self._connect().execute(self._sql(statement))

    def texts(self, ids: Collection[int]) -> Mapping[int, StoredTexts]:
        """Texts of passages by id; unknown ids are absent."""
        rows = self._connect().execute(self._sql(READ), (json.dumps(list(ids)),)).fetchall()
        return {
            passage_id: StoredTexts(*(text.replace(NUL, "\0") for text in fields))
            for passage_id, *fields in rows
        }

    def holding(self, parts: Sequence[str], scope: Scope) -> list[int]:
        """Ids within the scope whose normalised texts hold every part, by reading them all."""
        dialect = dialect_of(self._connect())
        condition, params = scope_sql.where(scope, dialect=dialect)
        holds = " AND ".join([HOLDS[dialect]] * len(parts))
        sql = self._sql(HOLDING).replace("{holds}", holds).replace("{condition}", condition)
        rows = self._connect().execute(sql, (*map(_storable, parts), *params)).fetchall()
        return [int(row[0]) for row in rows]

    def _text_row(self, passage: Passage) -> tuple[int | str, ...]:
        fields = [*map(_storable, (passage.title, passage.body, passage.meta))]
        return (passage.id, *fields, _storable(_SEPARATOR.join(map(self._comparable, fields))))

    def _sql(self, statement: str) -> str:
        dialect = dialect_of(self._connect())
        names = {
            "{texts}": self._table,
            "{passages}": scope_sql.TABLE,
            "{integer}": dialect.integer,
            "{among}": dialect.among,
        }
        for name, value in names.items():
            statement = statement.replace(name, value)
        return statement


def _storable(text: str) -> str:
    """What every database takes. Postgres refuses NUL."""
    return without_surrogates(text).replace("\0", NUL)


def _scope_row(passage: Passage) -> tuple[int | str | None, ...]:
    return (
        passage.id,
        passage.owner,
        passage.vault,
        passage.session,
        passage.type.value if passage.type else "",
        passage.is_shared,
        passage.is_pinned,
        passage.is_archived,
        passage.retained_ms,
        passage.expires_ms,
    )
