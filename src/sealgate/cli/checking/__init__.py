"""The parts of `sealgate check`: probes that look at one thing each, and the report.

local.py     this machine: files, secrets, addresses, open files, the journal
network.py   the way to the exchange, Redis, and the gateway that runs, if one does
exchange.py  `/time`, sessions, one signed read per key
report.py    the lines
run.py       all of it, in order

What a probe saw is judged in core: refusals.py, vetting.py.
"""
