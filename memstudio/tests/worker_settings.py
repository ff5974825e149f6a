"""Settings of worker processes that tests start: a model that a test can hold, quick rounds."""

from __future__ import annotations

from memstudio.settings import *  # noqa: F403

MEMORY_LOCAL_SOURCES = {"multilingual-e5-small": "memstudio.tests.worker_source.build"}
CELERY_BEAT_SCHEDULE = {"sweep": {"task": "memory.sweep", "schedule": 1.0}}
