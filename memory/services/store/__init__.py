"""Items of a store as LangGraph knows it: a value under a namespace and a key, kept as a memory."""
