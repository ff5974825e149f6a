"""The project: settings, servers and tools around the app ``memory``."""
