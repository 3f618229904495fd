"""The sandbox exchange, for rehearsals and tests on one machine.

It is an implementation of its own: it imports nothing from the rest of the project, so that a mistake made
in the gateway cannot be made here too. One request passes `exchange.Exchange.answer` from top to bottom;
`server` is the shell of sockets around it, `websocket` that of the stream; `system` is the only door to time
and chance.
"""
