"""The rule packs: one TOML file for each language, and what reads them (``reading``)."""
