"""Files of memories, ours and other systems': read record by record, and written likewise.

Nothing here knows a database: readers yield records in the fields of our own export, writers take
them. Files may be far larger than memory.
"""
