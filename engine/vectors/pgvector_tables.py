"""The tables that pgvector searches: derived from the durable vectors, one generation at a time.

``memory_pgvector`` registers the tables of every index. A live one is complete and searched; one
that is not is being filled, from the durable vectors and from every writer, and then takes the
place of the live one. So new means of languages, or a store that was chosen late, cost no
embedding and no pause. ``memory_pgvector_mean`` keeps the means that the vectors of a table are
measured from.

A table holds nothing but what a search reads first: a row over 2 KB would be stored in pieces, and
scanned eight times slower. ``block`` stands for the owner, or the vault (``engine.vectors.base``).
Only for choosing rows early: the scope itself is applied to the passages.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import psycopg

from engine.database import atomic
from engine.postgres import PostgresConnection, failing
from engine.protocols import DatabaseConnection
from engine.scope_sql import TABLE
from engine.types import Matrix, Vector
from engine.vectors.centres import SMALLEST_NORM, STAND_INS, Centres
from engine.vectors.segment import Doubles

MOST_DIMENSIONS: Final = 16_000
"""What a ``halfvec`` can hold."""
INLINE_DIMENSIONS: Final = 4_000
"""What fits into a page beside the other columns, and what an HNSW index of halfvec takes."""
HEADER: Final = struct.Struct(">HH")

Stored = tuple[int, bytes, str]
"""Passage, durable vector, language."""

CREATE_REGISTER: Final = """
    CREATE TABLE IF NOT EXISTS memory_pgvector (
        index_id BIGINT NOT NULL, generation BIGINT NOT NULL, is_live BOOLEAN NOT NULL,
        filled_to BIGINT NOT NULL, PRIMARY KEY (index_id, generation))"""
CREATE_MEANS: Final = """
    CREATE TABLE IF NOT EXISTS memory_pgvector_mean (
        index_id BIGINT NOT NULL, generation BIGINT NOT NULL, language TEXT NOT NULL,
        mean BYTEA NOT NULL, PRIMARY KEY (index_id, generation, language))"""
# Owners and vaults of passages hardly ever change; when one does, every table hears of it.
CREATE_FUNCTION: Final = """
    CREATE OR REPLACE FUNCTION memory_pgvector_follow() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        held record;
        place record;
    BEGIN
        FOR held IN SELECT DISTINCT index_id FROM memory_pgvector LOOP
            PERFORM pg_advisory_xact_lock_shared(
                hashtextextended('pgvector-' || held.index_id, 0));
            FOR place IN
                SELECT index_id, generation FROM memory_pgvector WHERE index_id = held.index_id
            LOOP
                EXECUTE format(
                    'UPDATE memory_pgvector_%s_%s SET block = $1, is_shared = $2
                    WHERE passage_id = $3', place.index_id, place.generation)
                USING CASE WHEN NEW.vault_id IS NULL THEN 2 * NEW.owner_id
                    ELSE 2 * NEW.vault_id + 1 END, NEW.is_shared, NEW.id;
            END LOOP;
        END LOOP;
        RETURN NULL;
    END $$"""
CREATE_TRIGGER: Final = f"""
    CREATE OR REPLACE TRIGGER memory_pgvector_follow
    AFTER UPDATE OF owner_id, vault_id, is_shared ON {TABLE} FOR EACH ROW
    WHEN ((OLD.owner_id, OLD.vault_id, OLD.is_shared)
        IS DISTINCT FROM (NEW.owner_id, NEW.vault_id, NEW.is_shared))
    EXECUTE FUNCTION memory_pgvector_follow()"""
IS_READY: Final = f"""
    SELECT to_regclass('memory_pgvector') IS NOT NULL
        AND to_regclass('memory_pgvector_mean') IS NOT NULL
        AND EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = to_regclass('{TABLE}')
            AND tgname = 'memory_pgvector_follow')"""
HAS_REGISTER: Final = "SELECT to_regclass('memory_pgvector') IS NOT NULL"
EVERY: Final = "SELECT index_id, generation, is_live, filled_to FROM memory_pgvector"
REGISTERED: Final = """
    SELECT generation, is_live, filled_to FROM memory_pgvector
    WHERE index_id = ? ORDER BY generation"""
REGISTER: Final = """
    INSERT INTO memory_pgvector (index_id, generation, is_live, filled_to) VALUES (?, ?, ?, ?)"""
KEEP_MEAN: Final = """
    INSERT INTO memory_pgvector_mean (index_id, generation, language, mean) VALUES (?, ?, ?, ?)"""
MEANS: Final = """
    SELECT language, mean FROM memory_pgvector_mean WHERE index_id = ? AND generation = ?"""
FORGET: Final = "DELETE FROM {register} WHERE index_id = ? AND generation = ?"
REACHED: Final = """
    UPDATE memory_pgvector SET filled_to = ? WHERE index_id = ? AND generation = ?"""
TAKE_OVER: Final = """
    UPDATE memory_pgvector SET is_live = generation = ? WHERE index_id = ?"""
CREATE: Final = """
    CREATE TABLE {table} (
        passage_id BIGINT PRIMARY KEY, block BIGINT NOT NULL, is_shared BOOLEAN NOT NULL,
        vector {kind} NOT NULL)"""
STORE_INLINE: Final = "ALTER TABLE {table} ALTER COLUMN vector SET STORAGE {storage}"
BY_BLOCK: Final = "CREATE INDEX {table}_block ON {table} (block)"
SHARED: Final = "CREATE INDEX {table}_shared ON {table} (passage_id) WHERE is_shared"
DELETE: Final = """
    DELETE FROM {table}
    WHERE passage_id = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(? AS jsonb))::bigint))"""
HELD: Final = """
    SELECT passage_id FROM {table}
    WHERE passage_id = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(? AS jsonb))::bigint))"""
PLACES: Final = f"""
    SELECT id, CASE WHEN vault_id IS NULL THEN 2 * owner_id ELSE 2 * vault_id + 1 END, is_shared
    FROM {TABLE}
    WHERE id = ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(? AS jsonb))::bigint))
    ORDER BY id FOR SHARE"""
COPY: Final = "COPY {table} (passage_id, block, is_shared, vector) FROM STDIN (FORMAT BINARY)"


@dataclass(frozen=True, slots=True)
class Generation:
    """One table of an index. ``filled_to`` is the last passage that was copied into it."""

    index_id: int
    number: int
    is_live: bool
    filled_to: int

    @property
    def table(self) -> str:
        """Name of the table."""
        return f"memory_pgvector_{self.index_id}_{self.number}"


def ensure(connection: DatabaseConnection) -> None:
    """Create the register when absent; every index shares it."""
    if connection.execute(IS_READY).fetchone()[0]:
        return
    with atomic(connection):
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('pgvector', 0))")
        if connection.execute(IS_READY).fetchone()[0]:
            return
        for statement in (CREATE_REGISTER, CREATE_MEANS, CREATE_FUNCTION, CREATE_TRIGGER):
            connection.execute(statement)


def is_made(connection: DatabaseConnection) -> bool:
    """Whether the register is there."""
    return bool(connection.execute(HAS_REGISTER).fetchone()[0])


def forget_every(connection: DatabaseConnection) -> None:
    """Remove every table that was derived: the durable vectors have been replaced (a restore)."""
    if not is_made(connection):
        return
    for row in connection.execute(EVERY).fetchall():
        generation = Generation(*row)
        Register(generation.index_id, 1).end(connection, generation)


def raw_of(connection: DatabaseConnection) -> psycopg.Connection[Any]:
    """The driver's own connection, which shares the transaction."""
    return cast(PostgresConnection, connection).raw


class Register:
    """The generations of one index."""

    def __init__(self, index_id: int, dim: int) -> None:
        self._index_id = index_id
        self._dim = dim
        self._name = f"pgvector-{index_id}"

    def generations(self, connection: DatabaseConnection) -> list[Generation]:
        """Every table, the oldest first."""
        found = connection.execute(REGISTERED, (self._index_id,)).fetchall()
        return [Generation(self._index_id, *row) for row in found]

    def hold(self, connection: DatabaseConnection) -> list[Generation]:
        """The same, which stay as they are until the transaction ends."""
        connection.execute(
            "SELECT pg_advisory_xact_lock_shared(hashtextextended(?, 0))", (self._name,)
        )
        return self.generations(connection)

    def hold_any(self, connection: DatabaseConnection) -> list[Generation]:
        """The same in a database that may never have had such a table."""
        return self.hold(connection) if is_made(connection) else []

    def seize(self, connection: DatabaseConnection) -> list[Generation]:
        """The same, while no other writes any of them until the transaction ends."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (self._name,))
        return self.generations(connection)

    def begin(
        self, connection: DatabaseConnection, number: int, centres: Centres | None, *, live: bool
    ) -> Generation:
        """Make a table; ``live`` when there is nothing that must be copied into it."""
        fresh = Generation(self._index_id, number, live, -1)
        words = {
            "table": fresh.table,
            "kind": f"halfvec({self._dim})",
            "storage": "PLAIN" if self._dim <= INLINE_DIMENSIONS else "EXTERNAL",
        }
        for statement in (CREATE, STORE_INLINE, BY_BLOCK, SHARED):
            connection.execute(statement.format(**words))
        connection.execute(REGISTER, (self._index_id, number, live, -1))
        connection.executemany(
            KEEP_MEAN,
            [
                (self._index_id, number, language, mean.astype("<f4").tobytes())
                for language, mean in sorted(_means(centres).items())
            ],
        )
        return fresh

    def end(self, connection: DatabaseConnection, generation: Generation) -> None:
        """Remove a table."""
        for register in ("memory_pgvector", "memory_pgvector_mean"):
            key = (self._index_id, generation.number)
            connection.execute(FORGET.format(register=register), key)
        connection.execute(f"DROP TABLE IF EXISTS {generation.table}")

    def take_over(self, connection: DatabaseConnection, generation: Generation) -> None:
        """Make a generation the live one."""
        connection.execute(TAKE_OVER, (generation.number, self._index_id))

    def reached(self, connection: DatabaseConnection, generation: Generation, to: int) -> None:
        """Note how far a table is filled."""
        connection.execute(REACHED, (to, self._index_id, generation.number))

    def means(self, connection: DatabaseConnection, generation: Generation) -> dict[str, Vector]:
        """The means that the vectors of a table are measured from."""
        key = (self._index_id, generation.number)
        found = connection.execute(MEANS, key).fetchall()
        return {language: np.frombuffer(mean, "<f4") for language, mean in found}

    def remove(
        self,
        connection: DatabaseConnection,
        generations: Iterable[Generation],
        passages: Collection[int],
    ) -> None:
        """Take passages out of tables."""
        chosen = json.dumps(sorted(passages))
        for generation in generations:
            connection.execute(DELETE.format(table=generation.table), (chosen,))

    def put(
        self, connection: DatabaseConnection, generation: Generation, rows: Sequence[Stored]
    ) -> None:
        """Write vectors of passages that the table does not hold.

        Only of passages that exist; they keep their owner until the transaction ends.
        """
        chosen = json.dumps(sorted(row[0] for row in rows))
        found = connection.execute(PLACES, (chosen,)).fetchall()
        places = {row[0]: row[1:] for row in found}
        rows = [row for row in rows if row[0] in places]
        if not rows:
            return
        vectors = self._measured(connection, generation, rows)
        header = HEADER.pack(self._dim, 0)
        raw = raw_of(connection)
        statement = COPY.format(table=generation.table)
        with failing(), psycopg.Cursor(raw).copy(statement.encode()) as copy:
            copy.set_types(["int8", "int8", "bool", "bytea"])
            for (passage_id, *_rest), vector in zip(rows, vectors, strict=True):
                copy.write_row((passage_id, *places[passage_id], header + vector.tobytes()))

    def replace(
        self,
        connection: DatabaseConnection,
        generations: Iterable[Generation],
        rows: Sequence[Stored],
    ) -> None:
        """Write vectors of passages into tables, whether they hold them or not."""
        passages = [row[0] for row in rows]
        for generation in generations:
            self.remove(connection, [generation], passages)
            self.put(connection, generation, rows)

    def held(
        self, connection: DatabaseConnection, generation: Generation, passages: Collection[int]
    ) -> set[int]:
        """Those of the passages that a table holds."""
        chosen = (json.dumps(sorted(passages)),)
        found = connection.execute(HELD.format(table=generation.table), chosen).fetchall()
        return {row[0] for row in found}

    def _measured(
        self, connection: DatabaseConnection, generation: Generation, rows: Sequence[Stored]
    ) -> Matrix:
        """Unit vectors measured from the means of the table, as big-endian half floats."""
        centres = Centres(self.means(connection, generation))
        joined = b"".join(vector for _, vector, _ in rows)
        matrix: Matrix = np.frombuffer(joined, "<f4").reshape(-1, self._dim)
        left = measured(matrix, [language for _, _, language in rows], centres)
        halves: Matrix = left.astype(">f2")
        return halves


def measured(matrix: Matrix, languages: Sequence[str], centres: Centres) -> Doubles:
    """Rows measured from the means of their languages, at length one, in double precision.

    The same as ``Centres.centred`` does with one.
    """
    codes = {language: code for code, language in enumerate(dict.fromkeys(languages))}
    means = centres.table(codes, matrix.shape[1])
    moved = matrix.astype(np.float64) - means[[codes[language] for language in languages]]
    norms = np.sqrt((moved * moved).sum(axis=1, keepdims=True))
    found: Doubles = moved / np.maximum(norms, SMALLEST_NORM)
    return found


def _means(centres: Centres | None) -> dict[str, Vector]:
    """The mean of every language that has one, or something to stand in for it."""
    if centres is None:
        return {}
    languages = {*centres.packaged, *centres.stored, *STAND_INS}
    found = {language: centres.of(language) for language in languages}
    return {language: mean for language, mean in found.items() if mean is not None}
