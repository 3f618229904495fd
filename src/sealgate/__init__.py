"""Sealgate, a signing gateway for trading bots."""

__version__ = "0.2.0"
