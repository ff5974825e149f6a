"""Known services: where they are, how they are spoken to, which models they have."""
