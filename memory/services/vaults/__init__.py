"""Vaults: who may use them, their life, what lies in them, searching and asking."""
