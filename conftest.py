"""Settings of every test run: a home of its own, made before Django reads the settings.

With ``TEST_STACK=servers`` the run starts a Postgres and a Redis, and uses both.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack

import django
import pytest
from django.conf import settings

from engine.testing import postgres_server, redis_server
from memory.tests.named_tests import NamedTests

if settings.configured:
    raise pytest.UsageError("unset DJANGO_SETTINGS_MODULE: the tests bring their own home")

_home = tempfile.TemporaryDirectory(prefix="memory-studio-tests-")
for _name in [
    name for name in os.environ if name.startswith(("MEMORY_", "CELERY_", "DATABASE_", "REDIS_"))
]:
    del os.environ[_name]
os.environ["MEMORY_STUDIO_HOME"] = _home.name
_servers = ExitStack()
if os.environ.get("TEST_STACK") == "servers":
    _postgres = _servers.enter_context(postgres_server.running())
    os.environ["DATABASE_URL"] = _postgres.url("studio")
    os.environ["REDIS_URL"] = _servers.enter_context(redis_server.running()).url
os.environ["DJANGO_SETTINGS_MODULE"] = "memstudio.settings"
django.setup()


def pytest_configure(config: pytest.Config) -> None:
    """Let a whole run check that the tests which the documents name have run."""
    config.pluginmanager.register(NamedTests(), "named-tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, on servers, what is about the embedded default alone."""
    if "DATABASE_URL" not in os.environ:
        return
    left_out = [item for item in items if item.get_closest_marker("embedded")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stop the servers and remove the home when the run is over."""
    _servers.close()
    _home.cleanup()
