"""A whole installation on this machine whose processes are killed in turn while it is loaded."""
