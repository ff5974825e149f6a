"""Memory backends beside our own tables: who holds the truth, its mirror here, who follows it."""
