"""The connections to the exchange, and what comes back on them."""
