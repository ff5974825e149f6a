"""One test of a JSON column as SQL that SQLite and Postgres answer alike.

Django's own JSON lookups compare as each database does: SQLite has every text above every number,
Postgres sorts texts by the language of the database. Here a value is compared with values of its
own kind only, numbers as numbers and texts by code point; what is missing matches nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, F, Func
from django.db.models.sql.compiler import SQLCompiler

Scalar = str | int | float | bool | None
Operator = Literal["eq", "gt", "gte", "lt", "lte", "contains", "icontains"]
COMPARED: Final = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

Sql = tuple[str, list[object]]


class JsonTest(Func):
    """Whether the value at a path of a JSON column stands so to a scalar; never NULL.

    ``path`` are names of members; a list has none. ``eq`` with None is true for null and for what
    is missing. ``contains`` is a part of a text, or an element of a list.
    """

    output_field = BooleanField()

    def __init__(
        self, column: str | F, path: Sequence[str], operator: Operator, value: Scalar
    ) -> None:
        super().__init__(F(column) if isinstance(column, str) else column)
        self.extra |= {"path": tuple(path), "test": operator, "value": value}

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_extra: Any
    ) -> Any:
        """With the JSON functions of SQLite."""
        column, given = compiler.compile(self.source_expressions[0])
        # As Django stores names: in ASCII, with escapes.
        place = "$" + "".join(f".{json.dumps(name)}" for name in self.extra["path"])
        at: Sql = (f"({column}, %s)", [*given, place])
        return self._sqlite(at)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_extra: Any
    ) -> Any:
        """With the operators of ``jsonb``."""
        column, given = compiler.compile(self.source_expressions[0])
        arrows = " -> %s::text" * len(self.extra["path"])
        return self._postgresql((f"({column}{arrows})", [*given, *self.extra["path"]]))

    def _sqlite(self, at: Sql) -> Sql:
        place, given = at
        value, test = self.extra["value"], self.extra["test"]
        kind = f"JSON_TYPE{place}"
        if value is None:
            return f"COALESCE({kind}, 'null') = 'null'", given
        if test == "contains":
            return self._sqlite_contains(at)
        if test == "icontains":
            sql = f"INSTR(LOWER(JSON_EXTRACT{place}), LOWER(%s)) > 0"
            return f"CASE WHEN {kind} = 'text' THEN {sql} ELSE 0 END", [*given, *given, value]
        if isinstance(value, bool):
            return f"COALESCE({kind} = %s, 0)", [*given, "true" if value else "false"]
        kinds = "'text'" if isinstance(value, str) else "'integer', 'real'"
        sql = (
            f"CASE WHEN {kind} IN ({kinds}) THEN JSON_EXTRACT{place} {COMPARED[test]} %s ELSE 0 END"
        )
        return sql, [*given, *given, value]

    def _sqlite_contains(self, at: Sql) -> Sql:
        place, given = at
        value = self.extra["value"]
        if isinstance(value, bool):
            inner, wanted = "type = %s", ["true" if value else "false"]
        else:
            kinds = "'text'" if isinstance(value, str) else "'integer', 'real'"
            inner, wanted = f"type IN ({kinds}) AND value = %s", [value]
        among = f"EXISTS (SELECT 1 FROM JSON_EACH{place} WHERE {inner})"
        cases = f"WHEN JSON_TYPE{place} = 'array' THEN {among}"
        params = [*given, *given, *wanted]
        if isinstance(value, str):
            cases += f" WHEN JSON_TYPE{place} = 'text' THEN INSTR(JSON_EXTRACT{place}, %s) > 0"
            params += [*given, *given, value]
        return f"CASE {cases} ELSE 0 END", params

    def _postgresql(self, at: Sql) -> Sql:
        place, given = at
        value, test = self.extra["value"], self.extra["test"]
        kind = f"jsonb_typeof({place})"
        if value is None:
            return f"COALESCE({kind}, 'null') = 'null'", given
        if test == "contains":
            return self._postgresql_contains(at)
        if test == "icontains":
            # In the collation "C" only ASCII letters have a case, as in SQLite.
            text = f"LOWER(({place} #>> '{{}}') COLLATE \"C\")"
            sql = f'strpos({text}, LOWER(%s::text COLLATE "C")) > 0'
            return f"CASE WHEN {kind} = 'string' THEN {sql} ELSE FALSE END", [*given, *given, value]
        if isinstance(value, bool):
            sql = f"COALESCE({place} = %s::jsonb, FALSE)"
            return sql, [*given, json.dumps(value)]
        text = f"({place} #>> '{{}}')"
        if isinstance(value, str):
            own, left, right, wanted = "string", f'{text} COLLATE "C"', "%s::text", value
        else:
            own, left, right, wanted = "number", f"{text}::numeric", "%s::numeric", repr(value)
        sql = f"CASE WHEN {kind} = '{own}' THEN {left} {COMPARED[test]} {right} ELSE FALSE END"
        return sql, [*given, *given, wanted]

    def _postgresql_contains(self, at: Sql) -> Sql:
        place, given = at
        value = self.extra["value"]
        kind = f"jsonb_typeof({place})"
        cases = f"WHEN {kind} = 'array' THEN {place} @> %s::jsonb"
        params = [*given, *given, json.dumps([value])]
        if isinstance(value, str):
            cases += f" WHEN {kind} = 'string' THEN strpos({place} #>> '{{}}', %s::text) > 0"
            params += [*given, *given, value]
        return f"CASE {cases} ELSE FALSE END", params
