"""Venues: what an exchange is, as data: a TOML file each. The code knows their grammar and no exchange."""
