"""Readers of what happened: metrics, log, live page, status. None has a line of its own in the pipeline.

Pure:
status        the state at one moment, of the gateway, of each exchange and of each key
pools         the pools that a key's requests pass: which are closed, and what goes on
metrics       a new metric goes here
traffic       the totals of all requests
recent        what happened lately: ten seconds at each exchange, the latest requests, what went wrong
troubles      the records of what went wrong, and when each is over
evidence      what is known about the cause of an error
picture       the figures of one moment, for page, `top` and `/status.json`
sentences     the same in words, made once for page and `top`
glance        the tiles, and each exchange at a glance, in words
key_sentences  keys and their pools in words
order_sentences  orders in doubt, last orders and streams in words
units         numbers, times and names as people read them
request_line  the log line of a request
redaction     blanks what looks like a secret

Shell:
log         sets up the log, and writes the requests' lines
log_stream  the log's way out of the process
live        the live view, twice a second
admin       the admin address, for programs and for the page
control     the admin socket: commands
views       the page and its files
serving     how both are served
running     asks a gateway that runs already
"""
