"""The studio and REST as a WSGI application, for any WSGI server."""

from __future__ import annotations

import os

from memstudio import quiet

quiet.apply()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstudio.settings")

from django.core.wsgi import get_wsgi_application  # noqa: E402 - the environment comes first

application = get_wsgi_application()
