"""Secrets read, and what is made of them: keys that sign, and who may use them."""
