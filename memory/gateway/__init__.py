"""``/v1``: chats with memory, in the words of OpenAI and Anthropic. Async from end to end."""
