"""Stores of memories other than our own tables: HTTP services, Obsidian, Notion, and a manager."""
