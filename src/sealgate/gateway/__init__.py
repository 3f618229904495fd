"""The shell around core: sockets, timers and files, and one visible pipeline.

Rooms, top to bottom; imports run downwards only (a test sees to it):

runtime   the parts put together, started, reloaded, stopped
probe     reads that commands send, past the line of the gateway
request   one request, from its head to its record: `request.pipeline` is the way of it
listeners where bots and commands come in: addresses, sockets, certificates
bots      a bot's connection, and what is read from it
sharing   limits shared with other gateways through Redis; imported only where that is set
journal   what outlives the process, in one SQLite file
clock     the exchange's time, kept by samples of it
upstream  the connections to the exchange, and what comes back on them
pacing    where requests wait for their turn
keys      secrets read, and what is made of them: keys that sign, and who may use them
platform  the machine: clock and randomness, timers, tasks, descriptors
"""
