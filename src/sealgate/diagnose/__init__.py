"""What `check`, `discover` and `keys` ask, and what they conclude.

Pure:
diagnosis  why the exchange refused a signed read: causes by rank
vetting    by which bounds a clock, a certificate, a disk is fine
schemes    which signature scheme an exchange accepts: what to ask next

Shell:
run          all probes of `check`, in order
local        this machine: files, secrets, addresses, the journal
network      DNS, TLS, Redis, the gateway that runs
exchange     the time, the keys, one signed read of each
probe        sends the reads, past the line of the gateway
key_reading  reads the lists of keys
arguments    what a command was asked for, checked
"""
