"""Qdrant as a vector store: a mirror of the vectors in the database, on a server of its own."""
