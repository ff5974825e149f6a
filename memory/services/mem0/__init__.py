"""Memories as the clients of mem0 know them: users, agents, apps and runs within one key."""
