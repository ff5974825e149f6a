"""Retrieval and text, in pure Python: imports neither Django, Ninja nor Celery."""
