"""Counts that belong to one moment, while someone else writes."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from memory.models import InstallationFact
from memory.moment import one_moment


@pytest.mark.django_db(transaction=True)
def test_what_others_store_meanwhile_is_not_seen() -> None:
    def store() -> None:
        InstallationFact.objects.create(name="meanwhile", value="1")
        connection.close()

    writer = threading.Thread(target=store)
    with one_moment():
        assert InstallationFact.objects.count() == 0
        writer.start()
        # On SQLite the writer waits for us; on a server it is through long before.
        writer.join(0.5)
        assert InstallationFact.objects.count() == 0
    writer.join()
    assert InstallationFact.objects.count() == 1
