"""Settings of every test run: a home of its own, made before Django reads the settings."""

from __future__ import annotations

import os
import tempfile

import django
import pytest
from django.conf import settings

if settings.configured:
    raise pytest.UsageError("unset DJANGO_SETTINGS_MODULE: the tests bring their own home")

_home = tempfile.TemporaryDirectory(prefix="memory-studio-tests-")
for _name in [name for name in os.environ if name.startswith(("MEMORY_", "CELERY_", "DATABASE_"))]:
    del os.environ[_name]
os.environ["MEMORY_STUDIO_HOME"] = _home.name
os.environ["DJANGO_SETTINGS_MODULE"] = "memstudio.settings"
django.setup()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Remove the home when the run is over."""
    _home.cleanup()
