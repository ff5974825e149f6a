"""From what was said to facts worth keeping: rules by language, guards, keys, secrets.

Pure text work: nothing here stores anything or asks a model. ``extractor.extract`` is the way in.
"""
