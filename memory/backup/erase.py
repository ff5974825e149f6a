"""Erasing everything that a restore puts in place of."""

from __future__ import annotations

from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model

from memory import wiring
from memory.backup.tables import INDEXES, TABLES
from memory.models import (
    InstallationFact,
    Passage,
    PassageChange,
    SignInLink,
    UploadPart,
    VectorIndex,
    VectorMark,
)


def everything() -> None:
    """Erase what a backup would hold, and what refers to it. Call inside a transaction.

    The change log stays and gets every passage that goes: indexes of other processes follow it.
    """
    # What was erased stays in no file, however the transaction ends: files can be made again.
    wiring.forget_files()
    _log()
    for row in VectorIndex.objects.all():
        wiring.store_for(row).drop()
        wiring.forget_store(row.pk)
    wiring.keyword_index().clear()
    models: list[type[Model]] = [Session, SignInLink, UploadPart, VectorMark, INDEXES.model]
    for model in (*models, *(table.model for table in reversed(TABLES))):
        for relation in model._meta.local_many_to_many:
            _empty(str(relation.m2m_db_table()))
        _empty(model._meta.db_table)


def keys_of_the_installation() -> None:
    """Forget which keys the database belongs to: the next start says so, with those it has."""
    InstallationFact.objects.all().delete()


def _log() -> None:
    log, passages = _quoted(PassageChange._meta.db_table), _quoted(Passage._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {log} (passage_id) SELECT id FROM {passages}")  # noqa: S608


def _empty(table: str) -> None:
    # Without the signals of the models, which would see to each row by itself.
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608 - names of our tables


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))
