"""The program: listeners, TLS, reload, start and end.

Shell:
serving    gateway and readers put together: what `serve` runs
gateway    the gateway as a whole
reload     builds, tries and swaps a new generation
exchanges  builds an exchange from the configuration (which one a request is for: request/router)
services   the parts that are kept over a reload
memory     what outlives every generation
opening    where bots come in
sockets    TCP and Unix sockets
tls        certificates and handshakes
"""
