"""``manage.py vaultd``: the one process that keeps the keys of sealed vaults, and the way there.

The webs pass whole requests on (``forwarding``), those that may concern a sealed vault
(``routing``); the daemon takes them from our own webs alone (``door``, ``proof``). One process
keeps keys at a time (``lease``).
"""
