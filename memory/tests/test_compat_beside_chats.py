"""The paths of mem0 under ``/v1`` are those that the front leaves to Django, and no other."""

from __future__ import annotations

from memory.compat import BESIDE_CHATS
from memory.compat.mem0 import entities, memories, project


def test_every_path_of_mem0_under_v1_is_left_to_it() -> None:
    paths = {
        path
        for router in (entities.router, memories.router, project.router)
        for path in router.path_operations
        if path.startswith("/v1/")
    }
    assert {"/".join(path.split("/")[:3]) for path in paths} == set(BESIDE_CHATS)
