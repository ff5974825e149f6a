"""Speed of retrieval and import beside raw FTS5, numpy, sqlite-vec, HNSW and mem0, in one run."""
