"""Reads that commands send, past the line of the gateway."""
