"""A bot's connection, and what is read from it."""
