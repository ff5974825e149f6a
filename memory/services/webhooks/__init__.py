"""Webhooks: what happened is noted in its own transaction and told by a job afterwards."""
