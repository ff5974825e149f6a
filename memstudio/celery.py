"""The Celery application. Settings are Django's, under the prefix ``CELERY_``."""

from __future__ import annotations

import os
from typing import Final

from celery import Celery

from memstudio import quiet

QUEUES: Final = ("interactive", "bulk")
"""Short work that someone waits for, and long work. A worker of each never waits for the other."""

quiet.apply()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstudio.settings")

app = Celery("memstudio")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory"])
