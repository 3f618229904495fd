"""Where bots and commands come in: addresses, sockets, certificates."""
