"""LangGraph: the routes of its store, ``/store``."""
