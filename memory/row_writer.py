"""Writes many rows of a model at once: by ``executemany``, without building SQL for each row.

An import is mostly rows, and most of the time of Django's ``bulk_create`` goes into resolving the
expressions that values might be. Rows here hold plain values; neither signals nor ``pre_save``
run, and a database error is the same as Django's. Call inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias

from django.db import connection, connections, models

_PLAIN: Final = (models.BooleanField, models.CharField, models.IntegerField, models.TextField)
"""Fields whose values every driver takes as they are."""

_Field: TypeAlias = "models.Field[Any, Any]"
_Convert: TypeAlias = Callable[[Any], Any]


def insert(rows: Sequence[models.Model]) -> None:
    """Insert new rows of one model. Ids that the database gives are not read back."""
    if not rows:
        return
    model, made = type(rows[0]), rows[0].pk is None
    fields = [field for field in _columns(model) if not (made and field.primary_key)]
    names = ", ".join(_name(field) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    sql = f"INSERT INTO {_table(model)} ({names}) VALUES ({marks})"
    many(sql, _values(rows, fields))
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


def update(rows: Sequence[models.Model], names: Iterable[str]) -> None:
    """Write the named attributes (``owner_id``, not ``owner``) of rows that are stored already."""
    if not rows:
        return
    model, wanted = type(rows[0]), set(names)
    fields = [field for field in _columns(model) if field.attname in wanted]
    if len(fields) != len(wanted):
        raise ValueError(f"not all of {sorted(wanted)} are columns of {model.__name__}")
    key = [field for field in _columns(model) if field.primary_key]
    changes = ", ".join(f"{_name(field)} = %s" for field in fields)
    many(
        f"UPDATE {_table(model)} SET {changes} WHERE {_name(key[0])} = %s",
        _values(rows, [*fields, *key]),
    )


def many(sql: str, values: Sequence[Sequence[Any]]) -> None:
    """Run a statement with ``%s`` placeholders once for each row of values."""
    with connection.cursor() as cursor:
        cursor.executemany(sql, values)


def _columns(model: type[models.Model]) -> list[_Field]:
    return list(model._meta.concrete_fields)


def _table(model: type[models.Model]) -> str:
    return str(connection.ops.quote_name(model._meta.db_table))


def _name(field: _Field) -> str:
    return str(connection.ops.quote_name(str(field.column)))


def _values(rows: Sequence[models.Model], fields: Sequence[_Field]) -> list[list[Any]]:
    """The values of each row as the driver takes them."""
    read = attrgetter(*[field.attname for field in fields])
    converters = _converters(fields)
    values = [list(read(row)) for row in rows]
    for row in values:
        for place, convert in converters:
            row[place] = convert(row[place])
    return values


def _converters(fields: Sequence[_Field]) -> list[tuple[int, _Convert]]:
    """What makes values ones for the driver, by their places in a row; most need nothing."""
    # Not ``connection`` itself, which looks the connection of the thread up at every use.
    database = connections[connection.alias]
    times = _keeping_last(partial(models.DateTimeField().get_db_prep_save, connection=database))
    found: list[tuple[int, _Convert]] = []
    for place, field in enumerate(fields):
        kind = field.target_field if isinstance(field, models.ForeignKey) else field
        if isinstance(kind, models.DateTimeField):
            found.append((place, times))
        elif not isinstance(kind, _PLAIN):
            found.append((place, partial(kind.get_db_prep_save, connection=database)))
    return found


def _keeping_last(convert: _Convert) -> _Convert:
    """The same conversion, done once for one object in a row: times of a row mostly are one."""
    last = converted = None

    def kept(value: Any) -> Any:
        nonlocal last, converted
        if value is not last:
            last, converted = value, convert(value)
        return converted

    return kept
