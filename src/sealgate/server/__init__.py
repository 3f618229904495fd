"""The program: listeners, TLS, reload, start and end.

Shell:
serving    gateway and readers put together: what `serve` runs
gateway    the gateway as a whole
reload     builds, tries and swaps a new generation
exchanges  from the configuration to an exchange
services   the parts that are kept over a reload
memory     what outlives every generation
opening    where bots come in
sockets    TCP and Unix sockets
tls        certificates and handshakes
"""
