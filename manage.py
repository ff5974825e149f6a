#!/usr/bin/env python
"""Entry point of every command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command of the command line; what forbids a start is one sentence, no traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstudio.settings")
    from memstudio import quiet
    from memstudio.errors import StartError

    quiet.apply()
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except StartError as error:
        sys.exit(f"memory studio: {error}")


if __name__ == "__main__":
    main()
