"""Chats with language models as they pass by: reading them, and putting memories into them."""
