"""One exchange: its clock, the connections to it, and what comes back on them.

Pure:
clock             the exchange's clock as an interval, when to sample it, and jumps of this host's
idle_connections  how long an idle connection may still carry an order
stamps            timestamps and nonces of one key
failure           how an attempt that brought no whole reply failed
refused_reads     why a read that needs no key is refused
proxy_refusals    why a proxy opens no tunnel

Shell:
exchange      all that the requests to one exchange share; a second exchange is a second of these
kept_clock    the time as the pipeline reads it
clock_keeper  asks `/time` again and again
destination   its address, opening a connection to it, and faults in words
tunnel        the way through a proxy
pool          the connections
connection    one connection: one request at a time
stream_hosts  where its streams are, and connections to them
answer        the reply, held or streamed
"""
