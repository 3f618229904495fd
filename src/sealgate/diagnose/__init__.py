"""What `check`, `discover` and `keys` ask, and what they conclude.

Pure:
causes   why the exchange refused a signed read: the table of causes
reads    the lines of a check on the replies to reads
logins   the lines of a check on logins on streams
vetting  by which bounds a clock, a certificate, a disk is fine
running  what a gateway that runs says of itself
schemes  which signature scheme an exchange accepts: what to ask next

Shell:
check        the probes of `check`, in order
local        this machine: files, secrets, addresses, the journal
network      DNS, TLS, Redis
exchange     the time, the keys, one signed read of each
streams      logs in on a stream with a key
probe        sends the reads, past the line of the gateway
key_reading  reads the lists of keys
arguments    what a command was asked for, checked
"""
