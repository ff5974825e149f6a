"""Which durable keyword index a database has."""

from __future__ import annotations

from engine.database import SQLITE, dialect_of
from engine.keyword.durable import DurableIndex, Texts
from engine.protocols import Connect
from engine.text.tokenize import Analyzer


def durable_index(connect: Connect, *, analyzer: Analyzer, texts: Texts | None) -> DurableIndex:
    """FTS5 on SQLite; on Postgres a table of postings, with pg_textsearch where that is there."""
    if dialect_of(connect()) is SQLITE:
        from engine.keyword.fts5 import Fts5Index

        return Fts5Index(connect, analyzer=analyzer, texts=texts)
    from engine.keyword.pg_textsearch import PgTextsearchIndex, is_available
    from engine.keyword.postgres import PostgresIndex

    if is_available(connect):
        return PgTextsearchIndex(connect, analyzer=analyzer, texts=texts)
    return PostgresIndex(connect, analyzer=analyzer, texts=texts)
