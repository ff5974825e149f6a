"""Runs behaviour case files through the product's own functions, one adapter for each area."""
