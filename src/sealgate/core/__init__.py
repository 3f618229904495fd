"""Decisions: values and `now` in, values out. No I/O, no clock, no randomness, no asyncio, no logging."""
