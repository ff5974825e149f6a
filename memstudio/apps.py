"""The project as a Django app: it has commands, and brings the Celery application to life."""

from __future__ import annotations

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Makes the Celery application the current one, so that services can send jobs."""

    name = "memstudio"
    verbose_name = "Memory Studio project"

    def ready(self) -> None:
        """Import the Celery application."""
        from memstudio.celery import app

        app.set_default()
