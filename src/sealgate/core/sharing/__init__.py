"""One limit, several gateways: a lead paces for all, and the others hand their claims to it."""
