"""Chats that pass through: who may, what memory adds, and the receipts they leave."""
