"""HTTP/1.1 on one parser, both ends; it knows nothing of trading.

Pure:
parser       messages out of bytes: bytes in, events out
head_memory  heads that were parsed before, by their bytes
headers      which fields are kept, dropped, passed on
target       the request target: one reading only
frames       where the frames of a WebSocket end that is passed on
websocket    its upgrade, and the frames of bots and of the gateway
places       who gives up a place when all are taken

Shell:
flow    whether a connection is read and written to; a body as it arrives
server  the server's side of a connection
"""
