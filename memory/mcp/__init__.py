"""MCP: the tools of an owner's memory, over HTTP at ``/mcp`` and over stdio.

Only ``server`` and ``stdio`` import the SDK, and only when the first client comes.
"""
