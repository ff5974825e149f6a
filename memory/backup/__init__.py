"""Backup and restore: the user-owned tables as files that no database vendor owns."""
