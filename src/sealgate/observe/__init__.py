"""Readers of what happened: metrics, log, live page, status. None has a line of its own in the pipeline.

Pure:
status    the state at one moment
metrics   a new metric goes here
traffic   the numbers that every request adds to
activity  the last ten seconds
evidence  what is known about the cause of an error

Shell:
log         one line per request
log_stream  the log's way out of the process
live        the live view, twice a second
picture     all that it shows of one moment
troubles    what went wrong lately
admin       the admin address and the admin socket
views       the page and its files
serving     how both are served
running     asks a gateway that runs already
"""
