"""The Django app: models, services, jobs and the edges."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_migrate


class MemoryConfig(AppConfig):
    """Registers the receivers that keep derived data in step with the tables."""

    name = "memory"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Memory Studio"

    def ready(self) -> None:
        from memory import tracing
        from memory.receivers import create_indexes, forget_files, forget_passage, forget_texts

        tracing.start_if_configured()
        post_migrate.connect(create_indexes, sender=self)
        post_delete.connect(forget_passage, sender=self.get_model("Passage"))
        post_delete.connect(forget_files, sender=self.get_model("Memory"))
        post_delete.connect(forget_texts, sender=self.get_model("Memory"))
