"""The parts of `sealgate check`: probes that look at one thing each, and the report.

local.py     this machine: files, secrets, addresses, open files
records.py   the journal
running.py   the gateway that runs, if one does
way.py       the way to the exchange: DNS and TLS
exchange.py  `/time`, sessions, one signed read per key
report.py    the lines
run.py       all of it, in order

What a probe saw is judged in core: refusals.py, signed_reads.py, vetting.py.
"""
