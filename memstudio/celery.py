"""The Celery application. Settings are Django's, under the prefix ``CELERY_``."""

from __future__ import annotations

import os
import warnings
from typing import Any, Final

from celery import Celery, signals
from celery.exceptions import CPendingDeprecationWarning
from celery.platforms import SecurityWarning

from memstudio import quiet

QUEUES: Final = ("interactive", "bulk")
"""Short work that someone waits for, and long work. A worker of each never waits for the other."""

quiet.apply()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstudio.settings")
# Messages are JSON only: what Celery warns root of is code inside messages.
warnings.filterwarnings("ignore", category=SecurityWarning)
# And of work that goes on while the broker is away: a row is claimed once, sent or sent again.
warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)

app = Celery("memstudio")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory"])


@signals.worker_init.connect  # type: ignore[untyped-decorator]
def _prepare(**_arguments: Any) -> None:
    """A worker needs a database of its own version, whoever makes it so."""
    import django

    from memstudio import startup

    django.setup()
    with startup.refusals():
        startup.prepare()


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def _begin(sender: Any, **_arguments: Any) -> None:
    """Have one of the workers see to what waits since before."""
    sender.app.send_task("memory.start", queue="bulk", retry=False)


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _hand_back(**_arguments: Any) -> None:
    """Jobs go back into the queue at their next step: nobody waits for hours of work."""
    from memory import jobs

    jobs.stop_working()
