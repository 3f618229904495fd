"""Limits shared with other gateways through Redis: imported only where `limits.redis` is set."""
