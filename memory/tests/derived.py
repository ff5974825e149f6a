"""The derived tables of the database that a test runs on, by what they are for."""

from __future__ import annotations

from django.db import connection

from memory import wiring


def keyword_name() -> str:
    """What the names of the keyword index's tables begin with."""
    return "memory_fts" if connection.vendor == "sqlite" else "memory_terms"


def keyword_table() -> str:
    """The table without which the durable keyword index cannot search."""
    name = keyword_name()
    return name if connection.vendor == "sqlite" else f"{name}_posting"


def lose_keywords() -> None:
    """Drop it, as a damaged database would have lost it."""
    wiring.connect().execute(f"DROP TABLE {keyword_table()}")


def keyword_rows() -> list[tuple[object, ...]]:
    """Every row in which the durable keyword index keeps something, versions of rows included."""
    if connection.vendor == "sqlite":
        sql = (
            "SELECT 'data', id, block FROM memory_fts_data"
            " UNION ALL SELECT 'size', id, sz FROM memory_fts_docsize"
        )
    else:
        sql = (
            "SELECT 'posting', ctid::text, xmin::text FROM memory_terms_posting"
            " UNION ALL SELECT 'terms', ctid::text, xmin::text FROM memory_terms"
        )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return sorted(cursor.fetchall(), key=str)


def store_name() -> str:
    """The vector store that serves when the settings name none."""
    return "in-process" if connection.vendor == "sqlite" else "pgvector"
