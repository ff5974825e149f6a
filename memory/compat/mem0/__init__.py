"""mem0: its platform's API under ``/v1``, ``/v2``, ``/v3``, its own server's under ``/mem0``."""
