"""Vaults: what the second seed asks of them, as pure functions and classes.

Reading files, the configuration, limits, sealing, the in-memory index and answers with citations.
"""
