"""Retrieval quality on data sets in the common format, through the product's own services."""
