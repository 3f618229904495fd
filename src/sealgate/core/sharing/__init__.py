"""One limit, several gateways: a leader paces for all, and the others hand their claims to it."""
