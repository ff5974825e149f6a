"""Our own tables as a memory backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connections

from engine.protocols import MemoryBackend
from engine.records import Draft, Record
from engine.testing.contracts_backends import BackendContract
from memory.models import ApiKey, Memory
from memory.principal import SYSTEM
from memory.services import keys
from memory.services.backends.local import LocalBackend


@pytest.mark.django_db(transaction=True)
class TestContract(BackendContract):
    def who(self, name: str) -> str:
        """The key of this name, made when it is missing."""
        key = ApiKey.objects.filter(name=name).first()
        return str((key or keys.create(SYSTEM, name)[0]).uid)

    def in_thread(self, create: Callable[[Draft], Record]) -> Callable[[Draft], Record]:
        """A thread's connection is its own."""

        def created(draft: Draft) -> Record:
            try:
                return create(draft)
            finally:
                connections.close_all()

        return created

    @pytest.fixture
    def backend(self, transactional_db: None, first_start: None) -> MemoryBackend:
        """The tables of the test's database."""
        return LocalBackend()

    def test_threads_do_not_get_in_each_others_way(self, backend: MemoryBackend) -> None:
        for number in range(6):
            self.who(f"o{number}")
        super().test_threads_do_not_get_in_each_others_way(backend)

    def test_creating_a_key_again_changes_it(self, backend: MemoryBackend) -> None:
        first = backend.create(self.tea())
        again = backend.create(self.tea())
        assert first.id == again.id
        assert Memory.objects.count() == 1
