"""The stages of a retrieval, in the order of the modules: lists, order, hits. Entry: retrieve."""
